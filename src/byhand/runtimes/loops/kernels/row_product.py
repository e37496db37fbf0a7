"""Kernels of `linear` for a few rows: what decoding multiplies, with bias, gate or residual stream in the same pass.

With one row there is nothing for BLAS to reuse: each weight is read once, and reading is what takes the time. So the
weights lie packed as [out, in], where each result is one dot product and a thread reads its part in one stream; a
loop that only reads and sums becomes vector instructions without asking first whether arrays overlap.

With bfloat16 weights two columns share a word: column 2j in its lower half, 2j + 1 in its upper half. A shift or a
mask makes each a float32 again, so that every processor can do it and only the reading is halved.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import math
from typing import Any

import numpy as np

from byhand.runtimes.loops.draft import OWN_SIGNAL, PART, PARTS, Buffer, Draft, Group
from byhand.runtimes.loops.kernels import linear
from byhand.runtimes.loops.kernels.exponential import exp
from byhand.runtimes.loops.kernels.gelu import CUBIC, TWO_K
from byhand.runtimes.loops.native import compiled, float_of_bits, matrix, sgemm, vector

F = np.float32
NONE, GELU, RELU = 0, 1, 2
FLOATS, HALVES, BLAS, BLAS_TRANSPOSED = 0, 1, 2, 3
BLAS_ROWS = 8  # from so many streams on, BLAS is faster than loops
UPPER = np.int32(-0x10000)


@compiled
def columns_of(part, parts, width):
    """Return the first and last column of a thread's part, on cache lines."""
    size = (width + 16 * parts - 1) // (16 * parts) * 16
    return min(part * size, width), min((part + 1) * size, width)


@compiled
def row_product(memory, words, blas, x, weight, bias, stream, out, rows, inner, width, biased, added, gate, way,
                part, parts):  # fmt: skip
    """out = gate(x W + bias) + stream, this thread's columns; `way` says how the weight lies and who multiplies."""
    low, high = columns_of(part, parts, width)
    n = high - low
    if n <= 0:
        return
    if way == FLOATS:
        dots(memory, x, weight + low * inner, out + low, rows, inner, width, n)
    elif way == HALVES:
        dots_of_halves(memory, words, x, weight + low // 2 * inner, out + low, rows, inner, width, n)
    elif way == BLAS:
        sgemm(blas[0], memory, x, weight + low, out + low, rows, n, inner, inner, width, width, 0, 0, F(1.0), F(0.0))
    else:
        sgemm(blas[0], memory, x, weight + low * inner, out + low, rows, n, inner, inner, inner, width, 0, 1, F(1.0),
              F(0.0))  # fmt: skip
    for b in range(rows):
        o = vector(memory, out + b * width + low, n)
        if biased:
            d = vector(memory, bias + low, n)
            for c in range(n):
                o[c] += d[c]
        if gate == GELU:
            for c in range(n):
                v = o[c]
                o[c] = v / (F(1.0) + exp(-TWO_K * v * (F(1.0) + CUBIC * v * v)))
        if gate == RELU:
            for c in range(n):
                o[c] = F(0) if o[c] <= F(0) else o[c]
        if added:
            s = vector(memory, stream + b * width + low, n)
            for c in range(n):
                o[c] += s[c]


@compiled
def dots(memory, x, weight, out, rows, inner, width, n):
    """out[b,c] = sum over i of x[b,i] weight[c,i]: n columns of `width`, four in a pass over x."""
    fours = n // 4 * 4
    for c in range(0, fours, 4):
        w0, w1 = vector(memory, weight + c * inner, inner), vector(memory, weight + (c + 1) * inner, inner)
        w2, w3 = vector(memory, weight + (c + 2) * inner, inner), vector(memory, weight + (c + 3) * inner, inner)
        for b in range(rows):
            a, o = vector(memory, x + b * inner, inner), vector(memory, out + b * width + c, 4)
            s0, s1, s2, s3 = F(0), F(0), F(0), F(0)
            for i in range(inner):
                s0 += a[i] * w0[i]
                s1 += a[i] * w1[i]
                s2 += a[i] * w2[i]
                s3 += a[i] * w3[i]
            o[0], o[1], o[2], o[3] = s0, s1, s2, s3
    for c in range(fours, n):
        w0 = vector(memory, weight + c * inner, inner)
        for b in range(rows):
            a, s0 = vector(memory, x + b * inner, inner), F(0)
            for i in range(inner):
                s0 += a[i] * w0[i]
            memory[out + b * width + c] = s0


@compiled
def lower(word):
    """Return the float32 whose upper half is the word's lower half."""
    return float_of_bits(word << np.int32(16))


@compiled
def upper(word):
    """Return the float32 whose upper half is the word's upper half."""
    return float_of_bits(word & UPPER)


@compiled
def dots_of_halves(memory, words, x, weight, out, rows, inner, width, n):
    """As `dots`, with the weights of columns c and c + 1 in the halves of a word."""
    fours = n // 4 * 4
    for c in range(0, fours, 4):
        w0 = vector(words, weight + c // 2 * inner, inner)
        w1 = vector(words, weight + (c // 2 + 1) * inner, inner)
        for b in range(rows):
            a, o = vector(memory, x + b * inner, inner), vector(memory, out + b * width + c, 4)
            s0, s1, s2, s3 = F(0), F(0), F(0), F(0)
            for i in range(inner):
                s0 += a[i] * lower(w0[i])
                s1 += a[i] * upper(w0[i])
                s2 += a[i] * lower(w1[i])
                s3 += a[i] * upper(w1[i])
            o[0], o[1], o[2], o[3] = s0, s1, s2, s3
    for c in range(fours, n):
        w0 = vector(words, weight + c // 2 * inner, inner)
        for b in range(rows):
            a, s0 = vector(memory, x + b * inner, inner), F(0)
            for i in range(inner):
                s0 += a[i] * (upper(w0[i]) if c % 2 else lower(w0[i]))
            memory[out + b * width + c] = s0


@compiled
def pack(memory, weight, packed, inner, width, transposed, part, parts):
    """packed[c,i] = weight[i,c], this thread's columns; sixteen columns, a cache line, in a pass."""
    low, high = columns_of(part, parts, width)
    p = matrix(memory, packed, width, inner)
    for first in range(low, high, 16):
        for i in range(inner):
            for c in range(first, min(first + 16, high)):
                p[c, i] = memory[weight + c * inner + i] if transposed else memory[weight + i * width + c]


@compiled
def pack_halves(words, weight, packed, inner, width, transposed, part, parts):
    """As `pack`, two columns in the halves of a word; the weights are bfloat16 already, their lower halves 0."""
    low, high = columns_of(part, parts, width)
    p = matrix(words, packed, (width + 1) // 2, inner)
    across, down = (inner, 1) if transposed else (1, width)
    for first in range(low, high, 16):
        for i in range(inner):
            for c in range(first, min(first + 16, high), 2):
                place = weight + c * across + i * down
                second = words[place + across] if c + 1 < width else np.int32(0)
                p[c // 2, i] = ((words[place] >> np.int32(16)) & np.int32(0xFFFF)) | (second & UPPER)


def meet(draft: Draft) -> None:
    """Wait for all threads: what they have written in parts is whole."""
    draft.emit("barrier", None, 0, own=OWN_SIGNAL, shares=PARTS)


def product(draft: Draft, group: Group) -> None:
    """x W with what surrounds it: bias, gate or the residual stream."""
    node, last = linear.linear_node(group), group.nodes[-1]
    x, out = draft.value(node.inputs[0]), draft.result(last)
    biased, added = len(node.inputs) > 2, last.equation.name == "residual"
    gate = {"gelu": GELU, "relu": RELU}.get(last.equation.name, NONE)
    rows, inner, width = math.prod(out.shape[:-1]), x.shape[-1], out.shape[-1]
    weight, way = _laid_out(draft, group, rows, inner, width)
    draft.emit(
        "row_product", last, 2 * rows * inner * width, x=x, weight=weight,
        bias=draft.value(node.inputs[2]) if biased else 0, stream=draft.value(last.inputs[0]) if added else 0,
        out=out, rows=rows, inner=inner, width=width, biased=int(biased), added=int(added), gate=gate, way=way,
        part=PART, parts=PARTS,
    )  # fmt: skip
    meet(draft)


def _laid_out(draft: Draft, group: Group, rows: int, inner: int, width: int) -> tuple[Buffer, int]:
    """Return where the loops or BLAS find the weight, and the way; packing it is a preparation of the plan."""
    tensor, transposed = linear.weight_of(group)
    weight = draft.value(tensor)
    sizes: dict[str, Any] = {
        "inner": inner,
        "width": width,
        "transposed": int(transposed),
        "part": PART,
        "parts": PARTS,
    }
    if draft.halves:
        packed = Buffer(f"{weight.name}:halves", ((width + 1) // 2, inner), "input", "int32")
        draft.prepare("pack_halves", weight=weight, packed=packed, **sizes)
        return packed, HALVES
    if rows >= BLAS_ROWS:
        return weight, BLAS_TRANSPOSED if transposed else BLAS
    if transposed:
        return weight, FLOATS
    packed = Buffer(f"{weight.name}:packed", (width, inner), "input")
    draft.prepare("pack", weight=weight, packed=packed, **sizes)
    return packed, FLOATS
