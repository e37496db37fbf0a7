"""Kernels of `embedding` followed by `add_positional`: look both rows up in one pass."""

# pyright: reportMissingImports=false
from typing import Any

import numpy as np

from byhand.runtimes.loops.kernels.products.packed_weights import columns_of
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import PART, PARTS
from byhand.runtimes.loops.lowering.rules import Group, Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, vector


@kernel(rows="steps", moves={"tokens": 1, "positions": "width", "out": "width"})
def embed(memory, words, table, positions, tokens, out, batch, steps, width):
    """out[b,t,:] = table[tokens[b,t],:] + positions[t,:]."""
    p, o = matrix(memory, positions, steps, width), matrix(memory, out, batch * steps, width)
    for i in range(batch * steps):
        e = vector(memory, table + words[tokens + i] * width, width)
        t = i % steps
        for c in range(width):
            o[i, c] = e[c] + p[t, c]


@kernel
def embed_back(memory, words, d_out, tokens, d_table, rows, width, vocab, adds):
    """d_table[tokens[i],:] += d_out[i,:], rows in their order."""
    if not adds:
        vector(memory, d_table, vocab * width)[:] = np.float32(0)
    d = matrix(memory, d_out, rows, width)
    for i in range(rows):
        e = vector(memory, d_table + words[tokens + i] * width, width)
        for c in range(width):
            e[c] += d[i, c]


@kernel
def positions_back(memory, d_out, d_positions, batch, steps, width, start, rows, adds):
    """d_positions[start + t,:] += sum over b of d_out[b,t,:]."""
    if not adds:
        vector(memory, d_positions, rows * width)[:] = np.float32(0)
    n = steps * width
    d, p = matrix(memory, d_out, batch, n), vector(memory, d_positions + start * width, n)
    for b in range(batch):
        for i in range(n):
            p[i] += d[b, i]


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


def match(node: Any, graph: Any) -> tuple[Any, ...] | None:
    """embedding -> add_positional, from position 0; with a cache, as far as a plan of generation begins there."""
    if len(node.inputs) > 2 and graph.input_name(node.inputs[2]) != "position":
        return None
    first = graph.only(node.inputs[0], "embedding")
    tokens = first and first.inputs[1].data
    return (first, node) if first and tokens.ndim == 2 and graph.is_input(first.inputs[1]) else None


def forward(builder: Builder, group: Group) -> None:
    """One call for both look-ups."""
    first, last = group.nodes
    table, tokens = map(builder.value, first.inputs)
    batch, steps, width = last.results[0][0]
    builder.emit(
        "embed", last, table=table, positions=builder.value(last.inputs[1]), tokens=tokens, out=builder.result(last),
        batch=batch, steps=steps, width=width,
    )  # fmt: skip


def backward(builder: Builder, group: Group) -> None:
    """Add to the token's row, and over the batch to the position's."""
    first, last = group.nodes
    (table, tokens), positions = first.inputs, last.inputs[1]
    batch, steps, width = last.results[0][0]
    d_out = builder.cotangent(last)
    d_table, adds = builder.gradient(table)
    builder.emit(
        "embed_back", first, d_out=d_out, tokens=builder.value(tokens), d_table=d_table, rows=batch * steps,
        width=width, vocab=table.shape[0], adds=adds,
    )  # fmt: skip
    d_positions, adds = builder.gradient(positions)
    builder.emit(
        "positions_back", last, d_out=d_out, d_positions=d_positions, batch=batch, steps=steps, width=width, start=0,
        rows=positions.shape[0], adds=adds,
    )  # fmt: skip


def decode(builder: Builder, group: Group) -> None:
    """Each stream's newest token."""
    first, last = group.nodes
    table, tokens = map(builder.value, first.inputs)
    rows, _, width = last.results[0][0]
    builder.emit(
        "embed_row", last, touched=12 * rows * width, table=table, positions=builder.value(last.inputs[1]),
        tokens=tokens, position=builder.inputs["position"], out=builder.result(last), rows=rows, width=width,
        part=PART, parts=PARTS,
    )  # fmt: skip
    builder.meet()


register(Rule(
    name="embeddings", covers=("embedding", "add_positional"), kernel="embed", stages=("train", "fill"), match=match,
    forward=forward, backward=backward, reason="token and position rows are read once and written once",
))  # fmt: skip
register(Rule(
    name="embeddings", covers=("embedding", "add_positional"), kernel="embed_row", stages=("decode",), match=match,
    forward=decode, reason="the position is read from the arena, so that one plan serves all positions",
))  # fmt: skip
