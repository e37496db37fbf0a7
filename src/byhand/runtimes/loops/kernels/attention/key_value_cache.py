"""Kernels of attention with a KV cache: each stream's newest position against the earlier ones, and prefill.

Keys, normalised and rotated, and values are stored as (B, K, S, D), one position per row: scores are S dot products,
the mix is a sum of S rows, both read sequentially, and a new position is one contiguous write. If the window slides,
the cache is a ring: position t is in place t % places, and every filled place is visible unless other layers see
more than this one. Each stream has its own position; a negative one is idle.
"""

from __future__ import annotations

import math

import numpy as np

from byhand.runtimes.loops.kernels.attention import queries_and_keys
from byhand.runtimes.loops.kernels.attention.causal_self_attention import emit_attention
from byhand.runtimes.loops.kernels.attention.chain import Chain, alike, chain_in, scale_in
from byhand.runtimes.loops.kernels.attention.score_tiles import store, stride_of
from byhand.runtimes.loops.kernels.vector.arithmetic import exp, largest
from byhand.runtimes.loops.kernels.vector.vector_moves import ROWS
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import PART, PARTS, Buffer

F = np.float32
HIDDEN = F(-1e30)  # effectively -inf: its weight underflows to 0


@kernel
def attend(memory, words, qk, row_qk, v, row_v, keys, values, scores, out, position, rows, heads, group_size, width,
           places, window, scale, part, parts):  # fmt: skip
    """Attention of each stream's newest position to visible ones, for this thread's heads.

    Stores the new key and value first; threads that share a key-value head all store the same values.
    """
    c = heads * width
    factor = memory[scale] if scale else F(1.0 / math.sqrt(width))
    stream, stored = -1, -1
    t, place, low, n, around = 0, 0, 0, 0, False
    for head in range(part * rows * heads // parts, (part + 1) * rows * heads // parts):
        b, h, kv = head // heads, head % heads, head // group_size
        if b != stream:
            stream = b
            t = words[position + b]
            end = min(t + 1, places)
            around = t >= places and window < places  # visible places may wrap around the ring's end
            place, low = t % places, 0 if around else max(0, end - window)
            n = end - low
        if t < 0:
            continue
        key, value = keys + kv * places * width, values + kv * places * width
        if kv != stored:
            stored = kv
            own = h // group_size * width
            store(memory, qk + b * row_qk + c + own, v + b * row_v + own, key, value, place, width)
        mixed_values(
            memory, words, qk + b * row_qk + h * width, key + low * width, value + low * width, scores,
            out + b * c + h * width, width, n, factor, place, places if around else 0, window,
        )  # fmt: skip


@kernel(costly=True)
def attend_many(memory, words, qk, row_qk, v, row_v, keys, values, scores, out, position, count, slot, steps, heads,
                group_size, width, places, window, scale, part, parts):  # fmt: skip
    """Attention of `count` new positions of one stream to earlier ones, for this thread's key-value heads.

    Each stores its key and value first, for later ones to see. All positions are places of the cache.
    """
    c, kv_heads = heads * width, heads // group_size
    factor = memory[scale] if scale else F(1.0 / math.sqrt(width))
    for kv in range(part * kv_heads // parts, (part + 1) * kv_heads // parts):
        at = (words[slot] * kv_heads + kv) * places * width
        first = kv * group_size * width
        for i in range(words[count]):
            t = words[position + i]
            low = max(0, t + 1 - window)
            k_new, v_new = qk + i * row_qk + c + kv * width, v + i * row_v + kv * width
            store(memory, k_new, v_new, keys + at, values + at, t, width)
            for head in range(first, first + group_size * width, width):
                mixed_values(
                    memory, words, qk + i * row_qk + head, keys + at + low * width, values + at + low * width,
                    scores, out + i * c + head, width, t + 1 - low, factor, t, 0, window,
                )  # fmt: skip
        for i in range(words[count], steps):
            vector(memory, out + i * c + first, group_size * width)[:] = F(0)


@compiled
def mixed_values(memory, words, q, keys, values, scores, out, width, n, factor, place, places, window):
    """out = softmax(factor q keys) values, n places of a head's cache (S, D).

    places  size of a ring in which only the last `window` places up to `place` are visible; 0: all n are
    """
    p, o = vector(memory, scores, n), vector(memory, out, width)
    dots(memory, q, keys, scores, n, width)
    if places:
        for s in range(n):
            if (place - s) % places >= window:
                p[s] = HIDDEN
    m = largest(words, scores, n)
    z = F(0)
    for s in range(n):
        e = exp((p[s] - m) * factor)
        p[s] = e
        z += e
    add_rows(memory, scores, values, out, n, width)
    z = F(1.0) / z
    for d in range(width):
        o[d] *= z


@compiled
def dots(memory, x, rows, out, count, width):
    """out[i] = sum over d of x[d] rows[i,d]; four rows per pass over x."""
    a, o = vector(memory, x, width), vector(memory, out, count)
    fours = count // 4 * 4
    for i in range(0, fours, 4):
        r0, r1 = vector(memory, rows + i * width, width), vector(memory, rows + (i + 1) * width, width)
        r2, r3 = vector(memory, rows + (i + 2) * width, width), vector(memory, rows + (i + 3) * width, width)
        s0, s1, s2, s3 = F(0), F(0), F(0), F(0)
        for d in range(width):
            s0 += a[d] * r0[d]
            s1 += a[d] * r1[d]
            s2 += a[d] * r2[d]
            s3 += a[d] * r3[d]
        o[i], o[i + 1], o[i + 2], o[i + 3] = s0, s1, s2, s3
    for i in range(fours, count):
        r0, s0 = vector(memory, rows + i * width, width), F(0)
        for d in range(width):
            s0 += a[d] * r0[d]
        o[i] = s0


@compiled
def add_rows(memory, x, rows, out, count, width):
    """out = sum over i of x[i] rows[i,:]; four rows per pass over out."""
    a, o = vector(memory, x, count), vector(memory, out, width)
    o[:] = F(0)
    fours = count // 4 * 4
    for i in range(0, fours, 4):
        r0, r1 = vector(memory, rows + i * width, width), vector(memory, rows + (i + 1) * width, width)
        r2, r3 = vector(memory, rows + (i + 2) * width, width), vector(memory, rows + (i + 3) * width, width)
        a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
        for d in range(width):
            o[d] += (a0 * r0[d] + a1 * r1[d]) + (a2 * r2[d] + a3 * r3[d])
    for i in range(fours, count):
        r0, a0 = vector(memory, rows + i * width, width), a[i]
        for d in range(width):
            o[d] += a0 * r0[d]


def decode(builder: Builder, group: Group) -> None:
    """The newest position against the cache."""
    chain = chain_in(builder, group)
    sizes = chain.sizes
    rows, heads, width = sizes["batch"], sizes["heads"], sizes["width"]
    packed, made = builder.value(chain.split.inputs[0]), queries_and_keys.prepared(builder, chain)
    queries_and_keys.emit(builder, chain)
    keys, values = kept(builder, chain)
    seen = min(builder.cached // 2, sizes["window"])  # cost in the middle of the window
    scores = builder.scratch(chain.scores, "scores", (builder.cached,), "own")
    builder.emit(
        "attend", chain.mix, 4 * rows * heads * width * seen, touched=8 * rows * chain.kv_heads * width * seen,
        qk=made, row_qk=made.width, v=packed.at(packed.width - chain.kv_heads * width), row_v=packed.width,
        keys=keys, values=values, scores=scores, out=builder.result(chain.merge),
        position=builder.inputs["position"], rows=rows, heads=heads, group_size=sizes["group_size"], width=width,
        places=builder.cached, window=sizes["window"],
        scale=scale_in(builder, chain), part=PART, parts=PARTS,
    )  # fmt: skip


def fill(builder: Builder, group: Group) -> None:
    """Prefill: attention over the whole prompt as in training; stores keys and values in the cache."""
    chain = chain_in(builder, group)
    keys, values = kept(builder, chain)
    if builder.continues:
        return emit_many(builder, chain, keys, values)
    scores = builder.scratch(chain.scores, "scores", (ROWS, stride_of(chain.sizes["steps"])), "own")
    queries_and_keys.emit(builder, chain)
    touched, count = keys.size + values.size, chain.sizes["batch"]
    emit_attention(builder, chain, scores, touched, first=0, count=count, keys=keys, values=values)


def emit_many(builder: Builder, chain: Chain, keys: Buffer, values: Buffer) -> None:
    """Append the call for positions behind the cached ones."""
    sizes = chain.sizes
    steps, width = sizes["steps"], sizes["width"]
    seen = min(builder.cached // 2, sizes["window"])
    packed, made = builder.value(chain.split.inputs[0]), queries_and_keys.prepared(builder, chain)
    queries_and_keys.emit(builder, chain)
    builder.emit(
        "attend_many", chain.mix, 4 * steps * sizes["heads"] * width * seen,
        touched=4 * packed.size + 8 * steps * chain.kv_heads * width * seen, qk=made, row_qk=made.width,
        v=packed.at(packed.width - chain.kv_heads * width), row_v=packed.width, keys=keys, values=values,
        scores=builder.scratch(chain.scores, "scores", (builder.cached,), "own"), out=builder.result(chain.merge),
        position=builder.inputs["position"], count=builder.inputs["count"], slot=builder.inputs["slot"], steps=steps,
        heads=sizes["heads"], group_size=sizes["group_size"], width=width, places=builder.cached,
        window=sizes["window"], scale=scale_in(builder, chain), part=PART, parts=PARTS,
    )  # fmt: skip


def kept(builder: Builder, chain: Chain) -> tuple[Buffer, Buffer]:
    """Return the buffers of a layer's keys and values, extended in place since nothing else reads them."""
    assert chain.caches
    keys, values = (builder.value(node.inputs[0]) for node in chain.caches)
    return keys, values


PATTERN = """merge_heads(mix(
    causal_softmax/window_softmax(attention_scores(
        rotary?(rms_norm/heads_rms_norm?(split_qkv(qkv).0), <position>),
        repeat_heads?(extend_cache(
            {kept}, rotary?(rms_norm/heads_rms_norm?(split_qkv(qkv).1), <position>), <position>))
    ), <position>),
    repeat_heads?(extend_cache({kept}, split_qkv(qkv).2, <position>))))"""
register(Rule(
    name="attention", pattern=PATTERN, kernel="attend", stages=("decode",), where=alike, forward=decode,
    reason="the newest key and value are stored and used in the same pass; only filled positions are visited",
))  # fmt: skip
register(Rule(
    name="attention", pattern=PATTERN, kernel="attention", stages=("fill",), where=alike, forward=fill,
    reason="as in training, and the prompt's keys and values go into the cache",
))  # fmt: skip
