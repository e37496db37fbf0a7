"""Kernel of the type bfloat16: float32 cut to its upper half, 8 bits of exponent and 7 of fraction.

Products may read such numbers; what they add up stays float32. The range is float32's, so no loss needs scaling.
"""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.native import compiled, halves, vector

U = np.uint32
NAN = np.uint16(0x7FC0)


@compiled
def round_bfloat16(memory, x, y, n):
    """y = x rounded to the nearest bfloat16, ties to even; NaN stays NaN."""
    a, o = vector(memory, x, n), halves(memory, y, n)
    bits = a.view(np.uint32)
    for i in range(n):
        rounded = np.uint16((bits[i] + U(0x7FFF) + ((bits[i] >> U(16)) & U(1))) >> U(16))
        o[i] = NAN if a[i] != a[i] else rounded
