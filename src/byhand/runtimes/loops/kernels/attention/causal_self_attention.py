"""Kernels of the middle of `causal_self_attention`: split_qkv, scores, softmax, mix and merge_heads in one.

Queries, keys and values are read where the projection left them: head h of row t begins at column h D. Keys and
values of a head are laid out once for register tiles; then ROWS queries at a time get their scores, softmax and mix
while everything is in the first cache. Of the masked half only a corner of each tile is computed.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import math
from typing import Any

import numpy as np

from byhand.runtimes.loops.kernels.products.packing import VECTORS, pack_columns, pack_left, pack_right
from byhand.runtimes.loops.kernels.products.register_tile import put_tiles, register_tile
from byhand.runtimes.loops.kernels.vector.arithmetic import exp, largest
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES, ROWS
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import PART, PARTS, Buffer
from byhand.runtimes.loops.lowering.rules import Group, Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import ONE, ZERO, compiled
from byhand.runtimes.loops.machine.views import address_of, matrix, vector

F = np.float32
PAIR = 2 * LANES  # keys in a tile of scores: three vectors would compute more of what is masked
EVEN = max(LANES, ROWS)  # keys are padded to a multiple: tiles read and write whole vectors and rows
QUERIES = 256  # in a block of the backward pass, which keeps their cotangents of scores


@compiled
def softmax_rows(memory, words, scores, first, keys, stride, covered, scale, causal):
    """Softmax of scale times ROWS rows of scores, in place; row i sees keys up to first + i, all else gets 0.

    The loop with exp runs over all keys that tiles covered: whole vectors cost less than a shorter row's loose end.
    """
    for i in range(ROWS):
        p = vector(memory, scores + i * stride, covered)
        visible = min(first + i + 1, keys) if causal else keys
        m = largest(words, scores + i * stride, visible)
        z = F(0)
        for s in range(covered):
            e = exp((p[s] - m) * scale) if s < visible else F(0)
            p[s] = e
            z += e
        z = F(1.0) / z
        for s in range(covered):
            p[s] *= z


@compiled
def softmax_rows_back(memory, d_weights, weights, stride, covered, scale):
    """d = scale p (d - sum of d p) for ROWS rows, in place; 0 where masked, since p is."""
    for i in range(ROWS):
        d, p = vector(memory, d_weights + i * stride, covered), vector(memory, weights + i * stride, covered)
        dot = F(0)
        for s in range(covered):
            dot += d[s] * p[s]
        for s in range(covered):
            d[s] = scale * p[s] * (d[s] - dot)


@compiled
def pack_pairs(base, keys, row, steps, width, out):
    """Lay out keys (steps, width) transposed, as columns of tiles (width, PAIR); return how many keys that makes."""
    padded = (steps + EVEN - 1) // EVEN * EVEN
    for s in range(0, padded, PAIR):
        vectors = min(PAIR, padded - s) // LANES
        pack_right(base, keys + s * row, row, ONE, ZERO, width, min(PAIR, steps - s), vectors, out + s * width)
    return padded


@compiled
def row_tiles(base, a, row, first, steps, width, room):
    """Return where ROWS rows of A from `first` on lie, and their strides: laid out, if fewer are left."""
    if first + ROWS <= steps:
        return a + first * row, row, ONE
    pack_left(base, a + first * row, row, ZERO, ZERO, width, steps - first, room)
    return room, ONE, ROWS


@compiled
def scores_of(base, scores, stride, a, row_a, next_a, packed, seen, padded, width):
    """Fill ROWS rows of scores with A times packed keys, for at least the first `seen`; return for how many."""
    s = 0
    while s < seen:
        vectors = min(PAIR, padded - s) // LANES
        right = base + 4 * (packed + s * width)
        register_tile(
            vectors, base + 4 * (scores + s), stride, ZERO, ZERO, ZERO, base + 4 * a, row_a, next_a, right,
            vectors * LANES, width, right, ZERO, ZERO, ZERO,
        )  # fmt: skip
        s += vectors * LANES
    return s


@compiled
def attend_head(
    memory, words, base, q, row, weights, stride, kept, out, row_out, steps, width, model_width, causal, room
):
    """One head of one text: out = softmax(scale q k^T) v. The weights of ROWS queries lie `kept` after the last."""
    scale = F(1.0 / math.sqrt(width))
    values = room + (steps + EVEN) * width
    tail = values + steps * (width + PAIR)
    edge = tail + ROWS * width
    padded = pack_pairs(base, q + model_width, row, steps, width, room)
    pack_columns(base, q + 2 * model_width, row, ZERO, ZERO, steps, width, values, ONE)
    for first in range(0, steps, ROWS):
        p = weights + first // ROWS * kept
        a, row_a, next_a = row_tiles(base, q, row, first, steps, width, tail)
        seen = min(first + ROWS, steps) if causal else steps
        covered = scores_of(base, p, stride, a, row_a, next_a, room, seen, padded, width)
        softmax_rows(memory, words, p, first, steps, stride, covered, scale, causal)
        rows = min(ROWS, steps - first)
        to = out + first * row_out
        put_tiles(base, rows, width, to, row_out, ZERO, p, stride, ONE, values, steps, ZERO, seen, edge)


@kernel(costly=True)
def attention(memory, words, qkv, weights, keys, values, out, batch, heads, steps, width, causal, places, kept,
              stride, part, parts, room):  # fmt: skip
    """out[b,t,h D:] = sum over s of weights[b,h,t,s] v[b,s,h D:], this thread's heads.

    weights  rows `stride` apart; unless `kept`, room for those of ROWS queries
    keys     where a cache keeps the keys (B, H, D, places) that it is to be filled with, or 0; `values` likewise
    """
    c, row, base = heads * width, 3 * heads * width, address_of(memory)
    tile = ROWS * stride if kept else 0
    for head in range(part, batch * heads, parts):
        b, h = head // heads, head % heads
        q, o = qkv + b * steps * row + h * width, out + b * steps * c + h * width
        if keys:
            k = matrix(memory, keys + head * width * places, width, places)
            v = matrix(memory, values + head * width * places, width, places)
            for t in range(steps):
                new_k, new_v = vector(memory, q + t * row + c, width), vector(memory, q + t * row + 2 * c, width)
                for d in range(width):
                    k[d, t] = new_k[d]
                    v[d, t] = new_v[d]
        p = weights + head * ((steps + ROWS - 1) // ROWS) * tile
        attend_head(memory, words, base, q, row, p, stride, tile, o, c, steps, width, c, causal, room)


@kernel(costly=True)
def attention_back(memory, d_out, qkv, weights, d_weights, d_qkv, batch, heads, steps, width, causal, stride, room):
    """Cotangents of q, k and v into their columns of d_qkv; `d_weights` holds those of QUERIES rows of weights."""
    c, row, base = heads * width, 3 * heads * width, address_of(memory)
    scale = F(1.0 / math.sqrt(width))
    size = steps * (width + PAIR)
    queries = room + (steps + EVEN) * width
    keys, d_outs, tail = queries + size, queries + 2 * size, queries + 3 * size
    edge = tail + ROWS * width
    last = (steps - 1) // QUERIES * QUERIES
    for b in range(batch):
        for h in range(heads):
            q, d_q = qkv + b * steps * row + h * width, d_qkv + b * steps * row + h * width
            d_o = d_out + b * steps * c + h * width
            p = weights + (b * heads + h) * ((steps + ROWS - 1) // ROWS * ROWS) * stride
            padded = pack_pairs(base, q + 2 * c, row, steps, width, room)
            pack_columns(base, q, row, ZERO, ZERO, steps, width, queries, ONE)
            pack_columns(base, q + c, row, ZERO, ZERO, steps, width, keys, ONE)
            pack_columns(base, d_o, c, ZERO, ZERO, steps, width, d_outs, ONE)
            for first in range(last, -1, -QUERIES):  # the last block sees every key: it writes, the others add
                end = min(first + QUERIES, steps)
                adds = ZERO if first == last else ONE
                for t in range(first, end, ROWS):
                    d = d_weights + (t - first) * stride
                    a, row_a, next_a = row_tiles(base, d_o, c, t, steps, width, tail)
                    seen = min(t + ROWS, steps) if causal else steps
                    covered = scores_of(base, d, stride, a, row_a, next_a, room, seen, padded, width)
                    softmax_rows_back(memory, d, p + t * stride, stride, covered, scale)
                    rows = min(ROWS, steps - t)
                    put_tiles(
                        base, rows, width, d_q + t * row, row, ZERO, d, stride, ONE, keys, steps, ZERO, seen, edge
                    )
                for s in range(0, end if causal else steps, ROWS):
                    t = max(first, s) if causal else first
                    rows, inner = min(ROWS, steps - s), end - t
                    d_k, d_v = d_q + c + s * row, d_q + 2 * c + s * row
                    left, d_left = p + t * stride + s, d_weights + (t - first) * stride + s
                    put_tiles(base, rows, width, d_v, row, adds, left, ONE, stride, d_outs, steps, t, inner, edge)
                    put_tiles(base, rows, width, d_k, row, adds, d_left, ONE, stride, queries, steps, t, inner, edge)


def chain(node: Any, graph: Any) -> tuple[Any, ...] | None:
    """split_qkv -> attention_scores -> softmax (causal or not) -> mix -> merge_heads, followed along the queries."""
    mix = graph.only(node.inputs[0], "mix")
    softmax = mix and graph.only(mix.inputs[0], "causal_softmax", "softmax")
    scores = softmax and graph.only(softmax.inputs[0], "attention_scores")
    split = scores and graph.only(scores.inputs[0], "split_qkv")
    return (split, scores, softmax, mix, node) if split else None


def match(node: Any, graph: Any) -> tuple[Any, ...] | None:
    """The chain with queries, keys and values of one projection, as many keys as queries."""
    if (found := chain(node, graph)) is None:
        return None
    split, scores, _, mix, _ = found
    parts = *scores.inputs, mix.inputs[1]
    own = all(graph.only(t, "split_qkv") is split and t.index == i for i, t in enumerate(parts))
    return found if own else None


def _sizes(group: Group) -> dict[str, int]:
    batch, heads, steps, width = group.nodes[3].results[0][0]
    causal = int(group.nodes[2].equation.name == "causal_softmax")
    return {"batch": batch, "heads": heads, "steps": steps, "width": width, "causal": causal}


def products(batch: int, heads: int, steps: int, width: int, causal: int) -> int:
    """Return the FLOPs of one (T, S, D) product over all heads, without what the mask skips."""
    visible = sum(min(ROWS, steps - f) * (min(f + ROWS, steps) if causal else steps) for f in range(0, steps, ROWS))
    return 2 * batch * heads * visible * width


def stride_of(steps: int) -> int:
    """Return how far apart rows of weights lie: whole vectors, and not all in the same places of the caches."""
    return -(-steps // EVEN) * EVEN + LANES * (steps % 128 == 0)


def room_of_attention(steps: int, width: int) -> int:
    """Return the float32 of scratch that a head needs, there or back."""
    return (steps + EVEN) * width + 3 * steps * (width + PAIR) + ROWS * width + ROWS * VECTORS * LANES


def weights_of(sizes: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of the weights as they are kept."""
    return sizes["batch"], sizes["heads"], -(-sizes["steps"] // ROWS) * ROWS, stride_of(sizes["steps"])


def forward(builder: Builder, group: Group) -> None:
    """One call for all heads."""
    weights = builder.saved(group.nodes[2], "weights", weights_of(_sizes(group)))
    emit_attention(builder, group, weights, weights.size)


def emit_attention(
    builder: Builder, group: Group, weights: Buffer, touched: int, keys: Any = 0, values: Any = 0, places: int = 0
) -> None:
    """Append the call; with keys and values it fills a cache and keeps no weights. `touched` are numbers besides."""
    split, _, _, mix, merge = group.nodes
    sizes = _sizes(group)
    qkv, out = builder.value(split.inputs[0]), builder.result(merge)
    builder.emit(
        "attention", mix, 2 * products(**sizes), 4 * (qkv.size + touched + out.size), qkv=qkv, weights=weights,
        keys=keys, values=values, out=out, **sizes, places=places, kept=int(not keys), stride=weights.width,
        part=PART, parts=PARTS, room=builder.room(room_of_attention(sizes["steps"], sizes["width"])),
    )  # fmt: skip


def backward(builder: Builder, group: Group) -> None:
    """One call for all heads; it writes the whole cotangent of the projection."""
    split, scores, softmax, mix, merge = group.nodes
    sizes = _sizes(group)
    d_out = builder.cotangent(merge)
    qkv, d_qkv = builder.value(split.inputs[0]), builder.fresh_gradient(split.inputs[0])
    weights = builder.saved(softmax, "weights", weights_of(sizes))
    d_weights = builder.scratch(scores, "d_scores", (min(QUERIES, weights.shape[2]), weights.width))
    builder.emit(
        "attention_back", mix, 4 * products(**sizes), 4 * (d_out.size + qkv.size + weights.size + d_qkv.size),
        d_out=d_out, qkv=qkv, weights=weights, d_weights=d_weights, d_qkv=d_qkv, **sizes, stride=weights.width,
        room=builder.room(room_of_attention(sizes["steps"], sizes["width"])),
    )  # fmt: skip
    builder.join(split.inputs[0], d_qkv, split)


register(Rule(
    name="attention", part_of="causal_self_attention",
    covers=("split_qkv", "attention_scores", ("causal_softmax", "softmax"), "mix", "merge_heads"),
    kernel="attention", stages=("train",), match=match, forward=forward, backward=backward,
    reason="some queries' scores stay in the first cache from product to softmax to product; of what is masked "
    "only a corner of a tile is computed; splitting and merging heads moves nothing",
))  # fmt: skip
