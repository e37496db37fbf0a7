"""Kernels that pack the weights of `linear` for a few rows: as [out, in], so that each result is one dot product.

With bfloat16 weights two columns share a word: column 2j in its lower half, 2j + 1 in its upper half.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import numpy as np

from byhand.runtimes.loops.kernels.products import linear
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import PART, PARTS, Buffer
from byhand.runtimes.loops.lowering.rules import Group
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import matrix

UPPER = np.int32(-0x10000)


@compiled
def columns_of(part, parts, width):
    """Return the first and last column of a thread's part, on cache lines."""
    size = (width + 16 * parts - 1) // (16 * parts) * 16
    return min(part * size, width), min((part + 1) * size, width)


@kernel
def pack(memory, weight, packed, inner, width, transposed, part, parts):
    """packed[c,i] = weight[i,c], this thread's columns; sixteen columns, a cache line, in a pass."""
    low, high = columns_of(part, parts, width)
    p = matrix(memory, packed, width, inner)
    for first in range(low, high, 16):
        for i in range(inner):
            for c in range(first, min(first + 16, high)):
                p[c, i] = memory[weight + c * inner + i] if transposed else memory[weight + i * width + c]


@kernel
def pack_bfloat16(words, weight, packed, inner, width, transposed, part, parts):
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


def packed_weight(builder: Builder, group: Group, inner: int, width: int) -> Buffer:
    """Return the weight as the loops read it; unless it is stored so, the plan's preparations pack it."""
    tensor, transposed = linear.weight_of(group)
    weight = builder.value(tensor)
    if transposed and not builder.bfloat16_weights:
        return weight
    shape, dtype = (((width + 1) // 2, inner), "int32") if builder.bfloat16_weights else ((width, inner), "float32")
    packed = Buffer(f"{weight.name}:packed", shape, "input", dtype)
    builder.prepare(
        "pack_bfloat16" if builder.bfloat16_weights else "pack", weight=weight, packed=packed, inner=inner,
        width=width, transposed=int(transposed), part=PART, parts=PARTS,
    )  # fmt: skip
    return packed
