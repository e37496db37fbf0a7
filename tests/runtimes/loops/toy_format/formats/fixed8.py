"""Whole multiples of 1/512 in a byte. Four numbers of a column share a word."""

# pyright: reportMissingImports=false
import numpy as np
from llvmlite import ir

from byhand.formats.format import ErrorBound, Format, register
from byhand.runtimes.loops.kernels.formats import contract
from byhand.runtimes.loops.kernels.vector.vector_moves import INTEGERS, LANES, VECTOR, constant, load
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits

SCALE = np.float32(1 / 512)
INVERSE, MOST, BYTE = np.float32(512), np.float32(127), np.int32(255)


def pack(x):
    return (x / SCALE).round().clip(-127, 127).astype(np.int8).view(np.uint8)


def unpack(blocks):
    return blocks.view(np.int8) * SCALE


@compiled
def number_at(words, at, i, lane):
    return np.float32(np.int8(words[at + lane] >> np.int32(8 * i))) * SCALE


@compiled
def put(words, source, down, count, at, lane):
    word = np.int32(0)
    for i in range(count):
        x = np.rint(float_of_bits(words[source + i * down]) * INVERSE)
        word |= (np.int32(min(max(x, -MOST), MOST)) & BYTE) << np.int32(8 * i)
    words[at + lane] = word


def vectors(builder, address):
    word, scale = load(builder, address, INTEGERS), ir.Constant(VECTOR, [float(SCALE)] * LANES)
    upper = [builder.shl(word, constant(24 - 8 * i)) for i in range(4)]
    return [builder.fmul(builder.sitofp(builder.ashr(x, constant(24)), VECTOR), scale) for x in upper]


FIXED8 = register(
    Format(
        name="fixed8",
        symbol="X8",
        size=1,
        unpack=unpack,
        pack=pack,
        largest=127 / 512,
        error=ErrorBound(absolute=1 / 1024),
    )
)
contract.PANELS[FIXED8] = contract.Panels(
    block=4, words=LANES, number_at=number_at, put=put, multiply=contract.of_vectors(vectors)
)
