"""Q8_0 and Q4_0 as the loops read them: 32 numbers of a column are small integers times a scale.

Equation    sum over k of x[k] w[k],  w = d (q - zero),  x = e p + rounding:
            d e (sum of p q - zero sum of p),   a block of 32 at a time, p and q integers
A block's words come first, each with four bytes or eight nibbles of a column, then its scales. Rows of x are rounded
to blocks too, p = round(x / e) with e = max |x| / 127, as in llama.cpp, so all products are of integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from byhand.formats.registry import FORMATS
from byhand.runtimes.loops.kernels.formats.contract import PANELS, Panels
from byhand.runtimes.loops.kernels.vector.integers import (
    SCALE,
    SCALE_WORDS,
    add_products,
    as_scale,
    get_scale,
    halves_up,
    nearest_integer,
    put_scale,
    quotient,
)
from byhand.runtimes.loops.kernels.vector.vector_moves import (
    INTEGERS,
    LANES,
    VECTOR,
    broadcast,
    constant,
    load,
    multiply_add,
    number,
    place,
)
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import address_of, float_of_bits, matrix_of, vector

F, N = np.float32, np.int32
bytes_of = matrix_of("int8")
BLOCK = 32
LEFT = BLOCK // 4 + 2  # words of a block of x: the integers, e, -sum of p
SIZE = N(0x7FFFFFFF)  # mask of a float32's bits without the sign
ONE, MANY, EIGHT, INFINITY = F(1), F(127), F(-8), F(np.inf)
ZERO = N(0)


@compiled
def inverse(d):
    """Return 1 / d; 0 if that is infinite, or d is 0."""
    found = quotient(ONE, d)
    return found if abs(found) < INFINITY else F(0)


@compiled
def round_block(memory, words, x, count, out):
    """Round `count` numbers to a block of a row, padded with zeros."""
    bits, p = vector(words, x, count), bytes_of(words, out, 1, BLOCK)
    most, total = ZERO, ZERO
    for i in range(count):
        most = max(most, bits[i] & SIZE)
    e = quotient(float_of_bits(most), MANY)
    scale = inverse(e)
    for i in range(count):
        q = nearest_integer(float_of_bits(bits[i]), scale)
        p[0, i] = np.int8(q)
        total += q
    for i in range(count, BLOCK):
        p[0, i] = np.int8(0)
    memory[out + BLOCK // 4] = as_scale(e)
    words[out + BLOCK // 4 + 1] = -total


@compiled
def quantised(memory, words, x, rows, inner, scratch):
    """Return rows of x rounded to blocks."""
    blocks, out = (inner + BLOCK - 1) // BLOCK, scratch
    for b in range(rows):
        for first in range(0, inner, BLOCK):
            if first + BLOCK <= inner:
                round_block(memory, words, x + b * inner + first, BLOCK, out)
            else:
                round_block(memory, words, x + b * inner + first, inner - first, out)
            out += LEFT
    return scratch, blocks * LEFT


def products_of(bytes_in: Callable[..., list[Any]], zero: int) -> Callable[..., None]:
    """Make `multiply` from a function (builder, words) -> the vectors of four unsigned bytes in them.

    zero  log2 of the byte that stands for 0
    """

    def multiply(builder: Any, sums: list[list[Any]], lefts: list[Any], rights: list[Any]) -> None:
        made = BLOCK // 4
        begun = [broadcast(builder, place(builder, left, number(made + 1)), INTEGERS) for left in lefts]
        totals = [[builder.shl(start, constant(zero))] * len(rights) for start in begun]
        held = len(bytes_in(builder, constant(0)))
        for k in range(0, made, held):
            read = [load(builder, place(builder, right, number(k // held * LANES)), INTEGERS) for right in rights]
            for j, column in enumerate(zip(*(bytes_in(builder, word) for word in read), strict=True)):
                for i, left in enumerate(lefts):
                    p = broadcast(builder, place(builder, left, number(k + j)), INTEGERS)
                    totals[i] = [add_products(builder, t, q, p) for t, q in zip(totals[i], column, strict=True)]
        for v, right in enumerate(rights):
            scales = load(builder, place(builder, right, number(made // held * LANES)), ir.VectorType(SCALE, LANES))
            d = builder.fpext(scales, VECTOR) if scales.type != VECTOR else scales
            for i, left in enumerate(lefts):
                e = broadcast(builder, place(builder, left, number(made)))
                exact, slot = builder.sitofp(totals[i][v], VECTOR), sums[i][v]
                builder.store(multiply_add(builder, builder.fmul(d, e), exact, builder.load(slot)), slot)

    return multiply


def whole(builder: Any, word: Any) -> list[Any]:
    """Return the bytes of Q8_0."""
    return [word]


def nibbles(builder: Any, word: Any) -> list[Any]:
    """Return the lower nibbles, then the upper ones."""
    low = constant(0x0F0F0F0F)
    return [builder.and_(word, low), builder.and_(builder.lshr(word, constant(4)), low)]


@compiled
def byte_at(words, at, i, lane):
    """Return element i of a column: d (q - 128)."""
    word = words[at + i // 4 * LANES + lane]
    q = ((word >> N(i % 4 * 8)) & N(255)) - N(128)
    return F(q) * get_scale(address_of(words) + 4 * (at + 8 * LANES), lane)


@compiled
def nibble_at(words, at, i, lane):
    """Return element i of a column: d (q - 8)."""
    word = words[at + i // 8 * LANES + lane]
    q = ((word >> N(i % 4 * 8 + i % 8 // 4 * 4)) & N(15)) - N(8)
    return F(q) * get_scale(address_of(words) + 4 * (at + 4 * LANES), lane)


@compiled
def put_bytes(words, source, down, count, at, lane):
    """Round a block of a column to Q8_0: d = max |x| / 127, q = x / d to the nearest, halves away from 0."""
    most = ZERO
    for i in range(count):
        most = max(most, words[source + i * down] & SIZE)
    d = quotient(float_of_bits(most), MANY)
    twice = F(2) * inverse(d)  # round(|x| / d) = (trunc(2 |x| / d) + 1) // 2
    for j in range(BLOCK // 4):
        word = ZERO
        for i in range(4):
            q = ZERO
            if 4 * j + i < count:
                bits = words[source + (4 * j + i) * down]
                q = (N(float_of_bits(bits & SIZE) * twice) + N(1)) >> N(1)
                q = (q ^ bits >> N(31)) - (bits >> N(31))  # apply the sign; a branch would be unpredictable
            word |= ((q + N(128)) & N(255)) << N(8 * i)
        words[at + j * LANES + lane] = word
    put_scale(address_of(words) + 4 * (at + 8 * LANES), lane, as_scale(d))


@compiled
def put_nibbles(words, source, down, count, at, lane):
    """Round a block of a column to Q4_0: d = (x of largest |x|) / -8, q = x / d + 8 rounded, at most 15."""
    most, extreme = N(-1), F(0)
    for i in range(count):
        bits = words[source + i * down]
        if (bits & SIZE) > most:
            most, extreme = bits & SIZE, float_of_bits(bits)
    d = quotient(extreme, EIGHT)
    scale = inverse(d)
    for j in range(BLOCK // 8):
        word = ZERO
        for i in range(8):
            q = N(8)
            if 8 * j + i < count:
                x = float_of_bits(words[source + (8 * j + i) * down])
                q = min(N(15), halves_up(x, scale))
            word |= q << N(i % 4 * 8 + i // 4 * 4)
        words[at + j * LANES + lane] = word
    put_scale(address_of(words) + 4 * (at + 4 * LANES), lane, as_scale(d))


PANELS[FORMATS["q8_0"]] = Panels(
    block=BLOCK, words=8 * LANES + SCALE_WORDS, number_at=byte_at, put=put_bytes,
    multiply=products_of(whole, 7), left=quantised, left_words=LEFT, sums=2,
)  # fmt: skip
PANELS[FORMATS["q4_0"]] = Panels(
    block=BLOCK, words=4 * LANES + SCALE_WORDS, number_at=nibble_at, put=put_nibbles,
    multiply=products_of(nibbles, 3), left=quantised, left_words=LEFT, sums=2,
)  # fmt: skip
