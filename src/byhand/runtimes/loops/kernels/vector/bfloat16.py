"""Copies in bfloat16, which products read: the one place where kernels round to it."""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import matrix_of_bfloat16, matrix_of_bits

U = np.uint32
NAN = np.uint16(0x7FC0)


@compiled
def to_bfloat16(bits):
    """Return a float32's bits rounded to the nearest bfloat16's, ties to even; NaN stays NaN.

    bfloat16 is float32 cut to its upper half, 8 bits of exponent and 7 of fraction: the range stays, so no loss needs
    scaling. Products may read such numbers; their sums stay float32.
    """
    nearest = np.uint16((bits + U(0x7FFF) + ((bits >> U(16)) & U(1))) >> U(16))
    return NAN if bits & U(0x7FFFFFFF) > U(0x7F800000) else nearest


@compiled
def copy_row(memory, x, copy, source, row, rows, width):
    """Round row `source` of x (rows, width) into row `row` of its copy, if there is one (`copy` is not 0).

    Kernels call it for a row that they have just written, while it is in the first cache.
    """
    if copy:
        bits, low = matrix_of_bits(memory, x, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
        for c in range(width):
            low[row, c] = to_bfloat16(bits[source, c])


@kernel
def round_bfloat16(memory, x, copy, n):
    """copy = x in bfloat16."""
    bits, o = matrix_of_bits(memory, x, 1, n), matrix_of_bfloat16(memory, copy, 1, n)
    for i in range(n):
        o[0, i] = to_bfloat16(bits[0, i])
