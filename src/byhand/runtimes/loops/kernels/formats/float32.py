"""float32 as the loops read it: a block is one number of each column."""

from typing import Any

from byhand.formats.registry import FLOAT32
from byhand.runtimes.loops.kernels.formats.contract import PANELS, Panels, of_vectors
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES, load
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits


@compiled
def number_at(words, at, i, lane):
    """Return the number."""
    return float_of_bits(words[at + lane])


@compiled
def put(words, source, down, count, at, lane):
    """Copy the number."""
    words[at + lane] = words[source] if count else 0


def vectors(builder: Any, address: Any) -> list[Any]:
    """Return the block: it is a vector."""
    return [load(builder, address)]


PANELS[FLOAT32] = Panels(block=1, words=LANES, number_at=number_at, put=put, multiply=of_vectors(vectors))
