"""Kernel of the embeddings in decoding: each stream's newest token, at a position that is read from the arena."""

# pyright: reportMissingImports=false
from __future__ import annotations

from byhand.runtimes.loops.kernels.embedding import embedding
from byhand.runtimes.loops.kernels.products.packed_weights import columns_of
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import PART, PARTS
from byhand.runtimes.loops.lowering.rules import Group, Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, vector


@kernel
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
        "embed_row", last, touched=12 * rows * width,
        table=builder.value(first.inputs[0]), positions=builder.value(last.inputs[1]),
        tokens=builder.value(first.inputs[1]), position=builder.inputs["position"], out=builder.result(last),
        rows=rows, width=width, part=PART, parts=PARTS,
    )  # fmt: skip
    builder.meet()


register(
    Rule(
        name="embeddings",
        covers=("embedding", "add_positional"),
        kernel="embed_row",
        stages=("decode",),
        match=embedding.match,
        forward=embeddings,
        reason="the position is read from the arena, so that one plan serves all positions",
    )
)
