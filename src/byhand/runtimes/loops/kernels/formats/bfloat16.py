"""bfloat16 as the loops read and multiply it: the upper half of a float32.

Two numbers of a column share a word; the first is the lower half. A shift or a mask makes each a float32 again, so
any processor can do it, and reads are halved. The range is float32's, so the loss needs no scaling.
"""

from typing import Any

import numpy as np

from byhand.formats.registry import FLOAT32, FORMATS
from byhand.runtimes.loops.kernels.formats.contract import (
    COPIES,
    PANELS,
    PRODUCTS,
    Copy,
    Panels,
    Products,
    of_vectors,
)
from byhand.runtimes.loops.kernels.vector.vector_moves import INTEGERS, LANES, VECTOR, constant, load
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.processor import amx_granted, multiplies_pairs
from byhand.runtimes.loops.machine.views import float_of_bits, matrix_of

HALF, UPPER, NONE = np.int32(16), np.int32(-0x10000), np.int32(0)
U, NAN = np.uint32, np.uint16(0x7FC0)


@compiled
def rounded(bits):
    """Return a float32's bits rounded to the nearest bfloat16's, ties to even; NaN stays NaN."""
    nearest = np.uint16((bits + U(0x7FFF) + ((bits >> U(16)) & U(1))) >> U(16))
    return NAN if bits & U(0x7FFFFFFF) > U(0x7F800000) else nearest


@compiled
def rounded_in_place(bits):
    """Return the bits of the nearest bfloat16, as a float32."""
    return U(rounded(bits)) << U(16)


@compiled
def number_at(words, at, i, lane):
    """Return the number: half a word."""
    word = words[at + lane]
    return float_of_bits(word & UPPER if i else word << HALF)


@compiled
def put(words, source, down, count, at, lane):
    """Pack two numbers of a column, rounded."""
    first = np.int32(rounded(U(words[source]))) if count else NONE
    second = np.int32(rounded(U(words[source + down]))) if count > 1 else NONE
    words[at + lane] = first | second << HALF


def vectors(builder: Any, address: Any) -> list[Any]:
    """Return the first numbers of the columns, then the second ones."""
    pairs = load(builder, address, INTEGERS)
    halves = builder.shl(pairs, constant(16)), builder.and_(pairs, constant(-0x10000))
    return [builder.bitcast(half, VECTOR) for half in halves]


BFLOAT16 = FORMATS["bfloat16"]
PANELS[BFLOAT16] = Panels(block=2, words=LANES, number_at=number_at, put=put, multiply=of_vectors(vectors))
NARROW, WIDE = Copy(BFLOAT16, matrix_of("uint16"), rounded), Copy(FLOAT32, matrix_of("uint32"), rounded_in_place)
COPIES += [NARROW, WIDE]
PRODUCTS[BFLOAT16] = [
    Products("AMX tiles", NARROW, "tiled_gemm_amx", amx_granted),
    Products("AVX512-BF16 tiles", NARROW, "tiled_gemm_pairs", multiplies_pairs),
    Products("numbers rounded to it and multiplied as float32, at its speed: no AMX here", WIDE),
]
