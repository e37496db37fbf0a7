"""What the page asks: singular values after each step."""

from byhand.equations.muon import STEPS
from byhand.equations.orthogonalise import A, B, C


def lifted(s: float) -> list[float]:
    """Return a singular value after each Newton-Schulz step."""
    found = [s]
    for _ in range(STEPS):
        s = found[-1]
        found.append(A * s + B * s**3 + C * s**5)
    return found[1:]
