"""Kernels of `embedding`, alone or followed by `add_positional`: one pass looks up both rows."""

from typing import Any

import numpy as np

from byhand.engine.graph.record import Graph
from byhand.runtimes.loops.kernels.formats.contract import PANELS, Panels
from byhand.runtimes.loops.kernels.linear.packed_weights import packed_weight
from byhand.runtimes.loops.kernels.threads import columns_of
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import float_of_bits, matrix, vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import PART, PARTS, Buffer


@compiled
def row_major(words, table, token, c, width):
    """Return element c of a token's row."""
    return float_of_bits(words[table + token * width + c])


def in_panels(kind: Panels) -> Any:
    """Make the look-up of one element in a table whose rows are columns of panels."""
    block, size, number_at = kind.block, kind.words, kind.number_at

    @compiled
    def at(words, table, token, c, width):
        panel = (width + block - 1) // block * size
        return number_at(words, table + token // LANES * panel + c // block * size, c % block, token % LANES)

    return at


def embed_of(ending: str, number: Any) -> None:
    """Make the kernels that look up rows of a table, from the function that returns an element."""

    @kernel(name=f"embed{ending}")
    def embed(memory, words, table, positions, tokens, scale, position, out, batch, steps, width, part, parts):
        """out[b,t,:] = factor table[tokens[b,t],:] + positions[start_b + t,:], this thread's columns.

        scale     offset of the factor; 0: it is 1
        position  offset of each sequence's start, which is negative if idle; 0: all start at 0
        """
        low, high = columns_of(part, parts, width)
        n, factor = high - low, memory[scale] if scale else np.float32(1)
        for i in range(batch * steps):
            start = max(0, words[position + i // steps]) if position else 0
            p, o = (
                vector(memory, positions + (start + i % steps) * width + low, n),
                vector(memory, out + i * width + low, n),
            )
            token = words[tokens + i]
            for c in range(n):
                o[c] = number(words, table, token, low + c, width) * factor + p[c]

    @kernel(name=f"embed_tokens{ending}")
    def embed_tokens(memory, words, table, tokens, scale, out, rows, width, part, parts):
        """out[i,:] = table[tokens[i],:], this thread's columns; times the factor at `scale` unless `scale` is 0."""
        factor = memory[scale] if scale else np.float32(1)
        low, high = columns_of(part, parts, width)
        for i in range(rows):
            token, o = words[tokens + i], vector(memory, out + i * width + low, high - low)
            for c in range(high - low):
                o[c] = number(words, table, token, low + c, width) * factor


embed_of("", row_major)
for format, kind in PANELS.items():
    embed_of(f"_packed_{format.name}", in_panels(kind))


@kernel
def embed_back(memory, words, d_out, tokens, scale, d_table, rows, width, vocab, adds):
    """d_table[tokens[i],:] += d_out[i,:], rows in order; times the factor at `scale` unless `scale` is 0."""
    factor = memory[scale] if scale else np.float32(1)
    if not adds:
        vector(memory, d_table, vocab * width)[:] = np.float32(0)
    d = matrix(memory, d_out, rows, width)
    for i in range(rows):
        e = vector(memory, d_table + words[tokens + i] * width, width)
        for c in range(width):
            e[c] += d[i, c] * factor


@kernel
def positions_back(memory, d_out, d_positions, batch, steps, width, rows, adds):
    """d_positions[t,:] += sum over b of d_out[b,t,:]."""
    if not adds:
        vector(memory, d_positions, rows * width)[:] = np.float32(0)
    n = steps * width
    d, p = matrix(memory, d_out, batch, n), vector(memory, d_positions, n)
    for b in range(batch):
        for i in range(n):
            p[i] += d[b, i]


def of_rows(group: Group, graph: Graph) -> bool:
    """Return whether the tokens are (B, T)."""
    return group.nodes[0].inputs[1].data.ndim == 2


def looked_up(builder: Builder, node: Any) -> tuple[Buffer, Buffer, str]:
    """Return the table (packed in generation), the tokens, and the suffix of the kernels' names."""
    table, tokens = node.inputs
    if builder.packed is None:
        return builder.value(table), builder.value(tokens), ""
    vocab, width = table.shape  # shared with a tied head
    return packed_weight(builder, table, True, width, vocab), builder.value(tokens), f"_packed_{builder.weights.name}"


def scale_of(builder: Builder, node: Any) -> Buffer | int:
    """Return the buffer of the embeddings' scale; 0 without one."""
    scale = node.static.get("scale")
    return 0 if scale is None else builder.constant(scale)


def forward(builder: Builder, group: Group) -> None:
    """One call for both look-ups; positions that are data are read from the arena."""
    first, last = group.nodes
    table, tokens, ending = looked_up(builder, first)
    batch, steps, width = last.results[0][0]
    given = builder.decodes or builder.continues
    if builder.continues:
        batch, steps = batch * steps, 1  # each row has its own position
    builder.emit(
        f"embed{ending}", last,
        touched=12 * batch * width if builder.decodes else None, table=table,
        positions=builder.value(last.inputs[1]), tokens=tokens, scale=scale_of(builder, first),
        position=builder.inputs["position"] if given else 0, out=builder.result(last), batch=batch, steps=steps,
        width=width, part=PART, parts=PARTS,
    )  # fmt: skip


def backward(builder: Builder, group: Group) -> None:
    """Add to each token's row, and summed over the batch to each position's."""
    first, last = group.nodes
    positions = last.inputs[1]
    batch, steps, width = last.results[0][0]
    d_out = builder.cotangent(last)
    _emit_back(builder, first, d_out)
    d_positions, adds = builder.gradient(positions)
    builder.emit(
        "positions_back", last, d_out=d_out, d_positions=d_positions, batch=batch, steps=steps, width=width,
        rows=positions.shape[0], adds=adds,
    )  # fmt: skip


def _emit_back(builder: Builder, node: Any, d_out: Buffer) -> None:
    table, tokens = node.inputs
    d_table, adds = builder.gradient(table)
    builder.emit(
        "embed_back", node, d_out=d_out, tokens=builder.value(tokens), scale=scale_of(builder, node), d_table=d_table,
        rows=d_out.rows, width=d_out.width, vocab=table.shape[0], adds=adds,
    )  # fmt: skip


def forward_alone(builder: Builder, group: Group) -> None:
    """Copy rows."""
    (node,) = group.nodes
    table, tokens, ending = looked_up(builder, node)
    out = builder.result(node)
    builder.emit(
        f"embed_tokens{ending}", node, touched=8 * out.size, table=table,
        tokens=tokens, scale=scale_of(builder, node),
        out=out, rows=out.rows, width=out.width, part=PART, parts=PARTS,
    )  # fmt: skip


def backward_alone(builder: Builder, group: Group) -> None:
    """Add to each token's row."""
    (node,) = group.nodes
    _emit_back(builder, node, builder.cotangent(node))


register(Rule(
    name="embedding", pattern="embedding(table, <>)", kernel="embed_tokens", stages=("train", "fill", "decode"),
    forward=forward_alone, backward=backward_alone,
))  # fmt: skip
register(Rule(
    name="embeddings", pattern="add_positional(embedding(table, <>), positions, <position>)", kernel="embed",
    stages=("train", "fill", "decode"), where=of_rows, forward=forward, backward=backward,
    reason="token and position rows are read once and written once",
))  # fmt: skip
