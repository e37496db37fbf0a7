"""The largest of a row, found through the bit patterns.

A maximum of floats stays a scalar loop, because of what NaN would do to its order. As integers, with the other bits
of negative numbers flipped, floats have the same order and the loop becomes vector instructions; a positive NaN
counts as larger than everything, so that it stays visible.
"""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits, vector

FLIP = np.int32(0x7FFFFFFF)


@compiled
def largest(words, start, n):
    """Return the largest of the n float32 at `start`; `words` is the memory as int32."""
    bits = vector(words, start, n)
    most = np.int32(-0x80000000)
    for i in range(n):
        key = bits[i] ^ ((bits[i] >> np.int32(31)) & FLIP)
        most = max(most, key)
    return float_of_bits(most ^ ((most >> np.int32(31)) & FLIP))
