"""Kernel and rules of decoding that have no file of their own: embeddings, and LayerNorm of the newest rows."""

# pyright: reportMissingImports=false
from __future__ import annotations

import math

from byhand.runtimes.loops.kernels.norm import layer_norm
from byhand.runtimes.loops.kernels.products.row_product import columns_of, meet
from byhand.runtimes.loops.lowering.builder import Builder, Group
from byhand.runtimes.loops.lowering.ir import PART, PARTS
from byhand.runtimes.loops.machine.native import compiled, matrix, vector


@compiled
def embed_row(memory, words, table, positions, tokens, position, out, rows, width, part, parts):
    """out[b,:] = table[tokens[b],:] + positions[position,:], this thread's columns."""
    low, high = columns_of(part, parts, width)
    p = vector(memory, positions + words[position] * width, width)
    o = matrix(memory, out, rows, width)
    for b in range(rows):
        e = vector(memory, table + words[tokens + b] * width, width)
        for c in range(low, high):
            o[b, c] = e[c] + p[c]


def embeddings(builder: Builder, group: Group) -> None:
    """Token and position of the newest row."""
    first, last = group.nodes
    rows, _, width = last.results[0][0]
    builder.emit(
        "embed_row", last, rows * width, touched=12 * rows * width,
        table=builder.value(first.inputs[0]), positions=builder.value(last.inputs[1]),
        tokens=builder.value(first.inputs[1]), position=builder.inputs["position"], out=builder.result(last),
        rows=rows,
        width=width, part=PART, parts=PARTS,
    )  # fmt: skip
    meet(builder)


def normalised(builder: Builder, group: Group) -> None:
    """Every thread normalises the whole row for itself: cheaper than to meet once more."""
    (node,) = group.nodes
    builder.result(node).kind = "own"
    builder.saved(node, "rstd", (math.prod(node.results[0][0][:-1]),)).kind = "own"
    if len(node.inputs) > 1:
        builder.saved(node, "xhat", node.results[0][0]).kind = "own"
    layer_norm.forward(builder, group)
