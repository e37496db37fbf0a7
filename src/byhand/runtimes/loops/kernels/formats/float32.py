"""float32 as the loops read it: a word is a number, and each column a row."""

from byhand.formats.registry import FLOAT32
from byhand.runtimes.loops.kernels.formats.contract import PACKED, Packed
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits


@compiled
def load(row, i, inner):
    """Return the number."""
    return float_of_bits(row[i])


@compiled
def put(row, i, inner, words, at, across, down, count):
    """Move the number."""
    row[i] = words[at]


PACKED[FLOAT32] = Packed((load,), put)
