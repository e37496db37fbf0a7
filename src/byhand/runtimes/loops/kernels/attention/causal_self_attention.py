"""Kernels of the middle of `causal_self_attention`: split_qkv, scores, softmax, mix and merge_heads fused.

Queries, keys and values are read in place from the projection: head h of row t begins at column h D, and query
head h reads head h // G of keys and values. A head of keys and values is packed for register tiles, once for its
group; then ROWS queries at a time get their scores, softmax and mix while everything is in the L1 cache. Of masked
scores (later keys, or keys outside the window) only the corners of edge tiles are computed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from byhand.runtimes.loops.kernels.attention import queries_and_keys
from byhand.runtimes.loops.kernels.attention.chain import Chain, alike, chain_in, scale_in
from byhand.runtimes.loops.kernels.attention.score_tiles import (
    EVEN,
    PAIR,
    first_key,
    pack_head,
    pack_pairs,
    product_flops,
    row_tiles,
    scores_of,
    scratch_of_attention,
    softmax_rows,
    softmax_rows_back,
    store_head,
    weights_of,
)
from byhand.runtimes.loops.kernels.products.packing import pack_columns
from byhand.runtimes.loops.kernels.products.register_tile import put_tiles
from byhand.runtimes.loops.kernels.vector.vector_moves import ROWS
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import ONE, ZERO, compiled
from byhand.runtimes.loops.machine.views import address_of
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import PART, PARTS, Buffer

F = np.float32
QUERIES = 256  # per block of the backward pass, which stores the cotangents of their scores


@compiled
def attend_head(memory, words, base, q, row, weights, stride, kept, out, row_out, steps, width, padded, causal,
                window, scale, scratch):  # fmt: skip
    """One head of one sequence: out = softmax(scale q k^T) v. Weights of ROWS queries lie `kept` after the previous.

    scratch  the head's keys and values, packed by `pack_head`
    """
    values = scratch + (steps + EVEN) * width
    tail = values + steps * (width + PAIR)
    edge = tail + ROWS * width
    for first in range(0, steps, ROWS):
        p = weights + first // ROWS * kept
        a, row_a, next_a = row_tiles(base, q, row, first, steps, width, tail)
        begin, seen = first_key(first, window), min(first + ROWS, steps) if causal else steps
        covered = scores_of(base, p, stride, a, row_a, next_a, scratch, begin, seen, padded, width)
        softmax_rows(memory, words, p, first, steps, stride, begin, covered, scale, causal, window)
        rows = min(ROWS, steps - first)
        to = out + first * row_out
        put_tiles(
            base, rows, width, to, row_out, ZERO, p + begin, stride, ONE, values, steps, begin, seen - begin, edge
        )


@kernel(costly=True)
def attention(memory, words, qk, row_qk, v, row_v, weights, keys, values, out, batch, heads, group_size, steps, width,
              causal, window, scale, slot, places, kept, stride, part, parts, scratch):  # fmt: skip
    """out[b,t,h D:] = sum over s of weights[b,h,t,s] v[b,s,h // group_size D:], this thread's heads.

    qk       rows of queries and keys: key heads follow the query heads
    window   the most keys a query sees
    scale    offset of the factor of scores; 0: 1 / sqrt(width)
    weights  rows `stride` apart; unless `kept`, scratch for those of ROWS queries
    keys     offset of the cache to fill (streams, K, places, D), or 0; `values` likewise
    slot     offset of the stream's number in the cache
    """
    c, base = heads * width, address_of(memory)
    factor = memory[scale] if scale else F(1.0 / math.sqrt(width))
    tile = ROWS * stride if kept else 0
    packed, padded = -1, 0
    for head in range(part * batch * heads // parts, (part + 1) * batch * heads // parts):
        b, h, kv = head // heads, head % heads, head // group_size
        q, o = qk + b * steps * row_qk + h * width, out + b * steps * c + h * width
        if kv != packed:
            group = h // group_size * width
            k_head, v_head = qk + b * steps * row_qk + c + group, v + b * steps * row_v + group
            packed, padded = kv, pack_head(base, k_head, row_qk, v_head, row_v, steps, width, scratch)
            if keys and h % group_size == 0:
                to = (words[slot] * (heads // group_size) + kv) * width * places
                store_head(memory, k_head, row_qk, v_head, row_v, keys + to, values + to, steps, width, places)
        p = weights + head * ((steps + ROWS - 1) // ROWS) * tile
        attend_head(
            memory, words, base, q, row_qk, p, stride, tile, o, c, steps, width, padded, causal, window, factor,
            scratch,
        )  # fmt: skip


@kernel(costly=True)
def attention_back(memory, d_out, qk, row_qk, v, row_v, weights, d_weights, d_qkv, batch, heads, group_size, steps,
                   width, causal, window, scale, stride, scratch):  # fmt: skip
    """Write the cotangents of q, k and v to d_qkv; `d_weights` holds those of QUERIES rows of weights.

    Those of a key-value head are sums over its query heads, in order.
    """
    c, base = heads * width, address_of(memory)
    row = c + 2 * (heads // group_size) * width
    factor = memory[scale] if scale else F(1.0 / math.sqrt(width))
    size = steps * (width + PAIR)
    queries = scratch + (steps + EVEN) * width
    keys, d_outs, tail = queries + size, queries + 2 * size, queries + 3 * size
    edge = tail + ROWS * width
    last = (steps - 1) // QUERIES * QUERIES
    padded = 0
    for b in range(batch):
        for h in range(heads):
            q, d_q = qk + b * steps * row_qk + h * width, d_qkv + b * steps * row + h * width
            d_k = d_qkv + b * steps * row + c + h // group_size * width
            d_v = d_k + heads // group_size * width
            d_o = d_out + b * steps * c + h * width
            p = weights + (b * heads + h) * ((steps + ROWS - 1) // ROWS * ROWS) * stride
            if h % group_size == 0:
                group = h // group_size * width
                padded = pack_pairs(base, v + b * steps * row_v + group, row_v, steps, width, scratch)
                k_head = qk + b * steps * row_qk + c + group
                pack_columns(base, k_head, row_qk, ZERO, ZERO, steps, width, keys, ONE)
            pack_columns(base, q, row_qk, ZERO, ZERO, steps, width, queries, ONE)
            pack_columns(base, d_o, c, ZERO, ZERO, steps, width, d_outs, ONE)
            for first in range(last, -1, -QUERIES):
                end = min(first + QUERIES, steps)
                for t in range(first, end, ROWS):
                    d = d_weights + (t - first) * stride
                    a, row_a, next_a = row_tiles(base, d_o, c, t, steps, width, tail)
                    begin, seen = first_key(t, window), min(t + ROWS, steps) if causal else steps
                    covered = scores_of(base, d, stride, a, row_a, next_a, scratch, begin, seen, padded, width)
                    softmax_rows_back(memory, d, p + t * stride, stride, begin, covered, factor)
                    rows = min(ROWS, steps - t)
                    put_tiles(
                        base, rows, width, d_q + t * row, row, ZERO, d + begin, stride, ONE, keys, steps, begin,
                        seen - begin, edge,
                    )  # fmt: skip
                for s in range(max(0, first + 1 - window) // ROWS * ROWS, end if causal else steps, ROWS):
                    reached = min(s + ROWS + window - 1, steps)  # the first query that sees none of these keys
                    # the last block that sees a key writes, for the group's first head; all others add
                    adds = ONE if h % group_size or first != (reached - 1) // QUERIES * QUERIES else ZERO
                    t = max(first, s) if causal else first
                    rows, inner = min(ROWS, steps - s), min(end, reached) - t
                    left, d_left = p + t * stride + s, d_weights + (t - first) * stride + s
                    to = s * row
                    put_tiles(
                        base, rows, width, d_v + to, row, adds, left, ONE, stride, d_outs, steps, t, inner, edge
                    )
                    put_tiles(
                        base, rows, width, d_k + to, row, adds, d_left, ONE, stride, queries, steps, t, inner, edge
                    )


def sequences_of(chain: Chain, batch: int) -> list[tuple[int, int]]:
    """Return the first sequence and the number of sequences for each pair of calls.

    Norm and rotation alternate with attention, sequence by sequence, so that its rows stay in the L2 cache.
    """
    return [(sequence, 1) for sequence in range(batch)] if chain.prepared else [(0, batch)]


def forward(builder: Builder, group: Group) -> None:
    """One call for all heads; with norm or rotation two for each sequence."""
    chain = chain_in(builder, group)
    sizes = chain.sizes
    weights = builder.saved(chain.softmax, "weights", weights_of(sizes))
    for first, count in sequences_of(chain, sizes["batch"]):
        queries_and_keys.emit(builder, chain, first)
        emit_attention(builder, chain, weights, weights.size, first=first, count=count)


def emit_attention(
    builder: Builder, chain: Chain, weights: Buffer, touched: int, *, first: int, count: int, keys: Any = 0,
    values: Any = 0,
) -> None:  # fmt: skip
    """Append the call for `count` sequences; with keys and values it fills a cache and keeps no weights.

    touched  further elements that the call reads or writes, for all sequences
    """
    sizes, batch = chain.sizes, chain.sizes["batch"]
    packed, out = builder.value(chain.split.inputs[0]), builder.result(chain.merge)
    made = queries_and_keys.prepared(builder, chain)
    columns = packed.width - chain.kv_heads * sizes["width"]
    steps = first * sizes["steps"]
    builder.emit(
        "attention", chain.mix, 2 * product_flops(sizes) * count // batch,
        4 * (packed.size + touched + out.size) * count // batch, qk=made.at(steps * made.width), row_qk=made.width,
        v=packed.at(steps * packed.width + columns), row_v=packed.width,
        weights=weights if keys else weights.at(first * weights.size // batch), keys=keys, values=values,
        out=out.at(steps * out.width), **sizes | {"batch": count}, scale=scale_in(builder, chain),
        slot=builder.inputs["slot"] if keys else 0, places=builder.cached,
        kept=int(not keys), stride=weights.width, part=PART, parts=PARTS,
        scratch=builder.shared_scratch(scratch_of_attention(sizes["steps"], sizes["width"])),
    )  # fmt: skip


def backward(builder: Builder, group: Group) -> None:
    """The forward calls in reverse; together they write the projection's whole cotangent."""
    chain = chain_in(builder, group)
    sizes, packed = chain.sizes, chain.split.inputs[0]
    batch, rows = sizes["batch"], sizes["steps"]
    d_out, qkv, d_qkv = builder.cotangent(chain.merge), builder.value(packed), builder.fresh_gradient(packed)
    weights = builder.saved(chain.softmax, "weights", weights_of(sizes))
    d_weights = builder.scratch(chain.scores, "d_scores", (min(QUERIES, weights.shape[2]), weights.width))
    made, gains = queries_and_keys.prepared(builder, chain), queries_and_keys.gain_targets(builder, chain)
    touched = 4 * (d_out.size + qkv.size + weights.size + d_qkv.size)
    for first, count in sequences_of(chain, batch):
        at = first * rows
        builder.emit(
            "attention_back", chain.mix, 4 * product_flops(sizes) * count // batch, touched * count // batch,
            d_out=d_out.at(at * d_out.width), qk=made.at(at * made.width), row_qk=made.width,
            v=qkv.at(at * qkv.width + qkv.width - chain.kv_heads * sizes["width"]), row_v=qkv.width,
            weights=weights.at(first * weights.size // batch), d_weights=d_weights,
            d_qkv=d_qkv.at(at * d_qkv.width), **sizes | {"batch": count},
            scale=scale_in(builder, chain), stride=weights.width,
            scratch=builder.shared_scratch(scratch_of_attention(rows, sizes["width"])),
        )  # fmt: skip
        queries_and_keys.emit_back(builder, chain, d_qkv, first, gains)
    builder.join(packed, d_qkv, chain.split)


register(Rule(
    name="attention", part_of="causal_self_attention",
    pattern="""merge_heads(mix(
        causal_softmax/softmax/window_softmax(attention_scores(
            rotary?(rms_norm/heads_rms_norm?(split_qkv(qkv).0), <position>),
            repeat_heads?(rotary?(rms_norm/heads_rms_norm?(split_qkv(qkv).1), <position>)))),
        repeat_heads?(split_qkv(qkv).2)))""",
    kernel="attention", stages=("train",), where=alike, forward=forward, backward=backward,
    reason="some queries' scores stay in the L1 cache from product to softmax to product; fully masked "
    "tiles are skipped; splitting, repeating and merging heads copies nothing",
))  # fmt: skip
