"""What the page asks: singular values, and the norm."""

from numpy.linalg import norm, svd

from byhand.equations.muon import STEPS
from byhand.equations.orthogonalise import A, B, C


def lifted(s: float) -> list[float]:
    """Return a singular value after each Newton-Schulz step."""
    found = [s]
    for _ in range(STEPS):
        s = found[-1]
        found.append(A * s + B * s**3 + C * s**5)
    return found[1:]
