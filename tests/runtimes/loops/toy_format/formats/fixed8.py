"""Whole multiples of 1/512 in a byte. Four columns share a word, and behind a row's words stands its scale."""

# pyright: reportMissingImports=false
import numpy as np

from byhand.formats.format import ErrorBound, Format, register
from byhand.runtimes.loops.kernels.formats import contract
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits

SCALE = np.float32(1 / 512)
BITS = SCALE.view(np.int32)
INVERSE, MOST, BYTE, BYTE_BITS = np.float32(512), np.float32(127), np.int32(255), np.int32(8)


def pack(x):
    return (x / SCALE).round().clip(-127, 127).astype(np.int8).view(np.uint8)


def unpack(blocks):
    return blocks.view(np.int8) * SCALE


def load_of(column):
    right = np.int32(8 * column)

    @compiled
    def load(row, i, inner):
        return np.float32(np.int8(row[i] >> right)) * float_of_bits(row[inner])

    return load


@compiled
def put(row, i, inner, words, at, across, down, count):
    for j in range(i, min(i + 3, inner)):
        word = np.int32(0)
        for k in range(count):
            x = np.rint(float_of_bits(words[at + (j - i) * down + k * across]) * INVERSE)
            word |= (np.int32(min(max(x, -MOST), MOST)) & BYTE) << np.int32(BYTE_BITS * k)
        row[j] = word
    row[inner] = BITS


@compiled
def length(inner):
    return inner + 1


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
contract.PACKED[FIXED8] = contract.Packed(tuple(map(load_of, range(4))), put, length, step=3)
