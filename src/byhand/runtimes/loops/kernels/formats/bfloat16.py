"""bfloat16 as the loops read it and multiply it: the upper half of a float32.

Of two columns that share a word, the first is its lower half. A shift or a mask makes each a float32 again, so that
every processor can do it and only the reading is halved. The range is float32's, so no loss needs scaling.
"""

import numpy as np

from byhand.formats.registry import FORMATS
from byhand.runtimes.loops.kernels.formats.contract import OPERANDS, PACKED, Operands, Packed
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits, matrix_of

HALF, UPPER, NONE = np.int32(16), np.int32(-0x10000), np.int32(0)
U, NAN = np.uint32, np.uint16(0x7FC0)


@compiled
def lower(row, i, inner):
    """Return the float32 whose upper half is the word's lower half."""
    return float_of_bits(row[i] << HALF)


@compiled
def upper(row, i, inner):
    """Return the float32 whose upper half is the word's upper half."""
    return float_of_bits(row[i] & UPPER)


@compiled
def rounded(bits):
    """Return a float32's bits rounded to the nearest bfloat16's, ties to even; NaN stays NaN."""
    nearest = np.uint16((bits + U(0x7FFF) + ((bits >> U(16)) & U(1))) >> U(16))
    return NAN if bits & U(0x7FFFFFFF) > U(0x7F800000) else nearest


@compiled
def put(row, i, inner, words, at, across, down, count):
    """Join the numbers of two columns, rounded; a last column without a second shares its word with 0."""
    second = np.int32(rounded(U(words[at + across]))) if count > 1 else NONE
    row[i] = np.int32(rounded(U(words[at]))) | second << HALF


BFLOAT16 = FORMATS["bfloat16"]
PACKED[BFLOAT16] = Packed((lower, upper), put)
OPERANDS[BFLOAT16] = Operands(
    matrix_of("uint16"), rounded, "gemm_bf16bf16f32_", {"amx-bf16": "AMX", "avx512bf16": "AVX512-BF16"}
)
