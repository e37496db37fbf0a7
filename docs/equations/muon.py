"""What the page asks: the matrices that Muon updates."""

from byhand.config import ModelConfig
from byhand.equations.muon import stretch
from byhand.model import declared


def stretches() -> list[tuple[str, int, tuple[int, int], float]]:
    """Return each matrix of the default model: name, how many lie side by side, shape of one, Muon's factor."""
    matrices = {n: p for n, p in declared(ModelConfig()).items() if p.group == "matrices"}
    shapes = {name.rpartition(".")[2]: (p.shape, p.packed) for name, p in matrices.items()}
    return [(name, n, (i, o // n), stretch((i, o), n)) for name, ((i, o), n) in shapes.items()]
