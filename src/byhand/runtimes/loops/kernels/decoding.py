"""Kernels of one position: the equations of the model for the newest token of each stream, columns shared by threads.

With one row there is nothing for BLAS to reuse: every weight is read once, so the threads split the columns of each
product, each reads its part of the weights (which then stays in that core's cache), and they meet afterwards.
Keys are kept as (B, H, D, T) and values as (B, H, T, D), so that both loops over earlier positions read in order.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import math
from typing import Any

import numpy as np

from byhand.runtimes.loops.draft import OWN_SIGNAL, PART, PARTS, Draft, Group
from byhand.runtimes.loops.kernels import causal_self_attention, layer_norm, linear
from byhand.runtimes.loops.kernels.exponential import exp
from byhand.runtimes.loops.kernels.gelu import CUBIC, TWO_K
from byhand.runtimes.loops.kernels.largest import largest
from byhand.runtimes.loops.native import compiled, matrix, sgemm, vector

F = np.float32
NONE, GELU, RELU = 0, 1, 2
BLAS_ROWS = 8  # from so many streams on, BLAS is faster than a loop over rows


@compiled
def columns_of(part, parts, width):
    """Return the first and last column of a thread's part, on cache lines."""
    size = (width + 16 * parts - 1) // (16 * parts) * 16
    return min(part * size, width), min((part + 1) * size, width)


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


@compiled
def row_product(memory, blas, x, weight, bias, stream, out, rows, inner, width, biased, added, gate, transposed, part,
                parts):  # fmt: skip
    """out = gate(x W + bias) + stream, this thread's columns; W is stored [out, in] if `transposed`."""
    low, high = columns_of(part, parts, width)
    n = high - low
    if n <= 0:
        return
    if transposed:
        for b in range(rows):
            a, o = vector(memory, x + b * inner, inner), vector(memory, out + b * width + low, n)
            for c in range(n):
                w = vector(memory, weight + (low + c) * inner, inner)
                dot = F(0)
                for i in range(inner):
                    dot += a[i] * w[i]
                o[c] = dot
    elif rows >= BLAS_ROWS:
        sgemm(blas[0], memory, x, weight + low, out + low, rows, n, inner, inner, width, width, 0, 0, F(1.0), F(0.0))
    else:
        add_rows(memory, x, weight + low, out + low, rows, inner, width, n)
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
def add_rows(memory, x, weight, out, rows, inner, width, n):
    """out[b,:] = sum over i of x[b,i] weight[i,:], n columns of `width`; four weight rows in a pass over out."""
    for b in range(rows):
        vector(memory, out + b * width, n)[:] = F(0)
    fours = inner // 4 * 4
    for i in range(0, fours, 4):
        w0, w1 = vector(memory, weight + i * width, n), vector(memory, weight + (i + 1) * width, n)
        w2, w3 = vector(memory, weight + (i + 2) * width, n), vector(memory, weight + (i + 3) * width, n)
        for b in range(rows):
            a, o = vector(memory, x + b * inner + i, 4), vector(memory, out + b * width, n)
            a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
            for c in range(n):
                o[c] += (a0 * w0[c] + a1 * w1[c]) + (a2 * w2[c] + a3 * w3[c])
    for i in range(fours, inner):
        w0 = vector(memory, weight + i * width, n)
        for b in range(rows):
            o, a0 = vector(memory, out + b * width, n), memory[x + b * inner + i]
            for c in range(n):
                o[c] += a0 * w0[c]


@compiled
def store_keys(memory, qkv, keys, values, batch, heads, steps, width, room):
    """Put the keys and values of `steps` positions, packed as the projection left them, into the cache."""
    c, row = heads * width, 3 * heads * width
    for b in range(batch):
        for h in range(heads):
            head = b * heads + h
            k, v = matrix(memory, keys + head * width * room, width, room), values + head * room * width
            for t in range(steps):
                source = qkv + (b * steps + t) * row + h * width
                new_k, new_v = vector(memory, source + c, width), vector(memory, source + 2 * c, width)
                o = vector(memory, v + t * width, width)
                for d in range(width):
                    k[d, t] = new_k[d]
                    o[d] = new_v[d]


@compiled
def attend(memory, words, qkv, keys, values, scores, out, position, rows, heads, width, room, part, parts):
    """Attention of the newest position to all so far, this thread's heads; stores its key and value first."""
    c, row = heads * width, 3 * heads * width
    t = words[position]
    scale = F(1.0 / math.sqrt(width))
    p = vector(memory, scores, t + 1)
    for b in range(rows):
        for h in range(part, heads, parts):
            head, start = b * heads + h, qkv + b * row + h * width
            key, value, o = keys + head * width * room, values + head * room * width, out + b * c + h * width
            k, v, mixed = (
                matrix(memory, key, width, room),
                matrix(memory, value, room, width),
                vector(memory, o, width),
            )
            for d in range(width):
                k[d, t] = memory[start + c + d]
                v[t, d] = memory[start + 2 * c + d]
            add_rows(memory, start, key, scores, 1, width, room, t + 1)
            m = largest(words, scores, t + 1)
            z = F(0)
            for s in range(t + 1):
                e = exp((p[s] - m) * scale)
                p[s] = e
                z += e
            add_rows(memory, scores, value, o, 1, t + 1, width, width)
            z = F(1.0) / z
            for d in range(width):
                mixed[d] *= z


@compiled
def sample(memory, words, controls, logits, allowed, tokens, position, drawn, rows, vocab, part):
    """Draw the next token of each stream, by the first thread: temperature, top-k, top-p, inverse CDF, as `draw`.

    controls    0 temperature, 1 top_k (0: all), 2 top_p (1: all), 3 tokens drawn so far; then a uniform number each
    """
    if part != 0:
        return
    step = int(controls[3])
    kept = vector(memory, allowed, vocab)
    for b in range(rows):
        z = vector(memory, logits + b * vocab, vocab)
        for i in range(vocab):
            z[i] = z[i] if kept[i] != F(0) else F(-np.inf)
        token = _drawn(z, controls[0], int(controls[1]), controls[2], controls[4 + step * rows + b])
        words[tokens + b] = token
        words[drawn + step * rows + b] = token
    words[position] += 1
    controls[3] += 1.0


@compiled
def _drawn(z, temperature, top_k, top_p, uniform):
    """Return one id drawn from logits, which are used up."""
    vocab = z.shape[0]
    if temperature == 0.0:
        return np.argmax(z)
    z /= F(temperature)
    m = z.max()
    total = 0.0
    if 0 < top_k < vocab or top_p < 1.0:
        order = np.argsort(-z, kind="mergesort")
        count = top_k if 0 < top_k < vocab else vocab
        for i in range(vocab):
            z[order[i]] = exp(z[order[i]] - m) if i < count and z[order[i]] > F(-np.inf) else F(0)
            total += z[order[i]]
        before = 0.0
        for i in range(vocab):
            mass = z[order[i]] / total
            if i > 0 and before >= top_p:
                z[order[i]] = F(0)
            before += mass
    else:
        for i in range(vocab):
            z[i] = exp(z[i] - m) if z[i] > F(-np.inf) else F(0)
    total = 0.0
    for i in range(vocab):
        total += z[i]
    below, total, last = uniform * total, 0.0, 0
    for i in range(vocab):
        if z[i] > F(0):
            total += z[i]
            last = i
            if total > below:
                break
    return last


def match_attention(node: Any, graph: Any) -> tuple[Any, ...] | None:
    """split_qkv -> (cache) -> attention_scores -> causal_softmax -> mix -> merge_heads."""
    mix = graph.only(node.inputs[0], "mix")
    softmax = mix and graph.only(mix.inputs[0], "causal_softmax")
    scores = softmax and graph.only(softmax.inputs[0], "attention_scores")
    split = scores and graph.only(scores.inputs[0], "split_qkv")
    if not (mix and softmax and scores and split) or graph.cache is None:
        return None
    kept = graph.cache.layer_of(scores.inputs[1], mix.inputs[1])
    return (split, scores, softmax, mix, node) if kept is not None else None


def _layer(draft: Draft, group: Group) -> int:
    cache: Any = draft.graph.cache
    return cache.layer_of(group.nodes[1].inputs[1], group.nodes[3].inputs[1])


def meet(draft: Draft) -> None:
    """Wait for all threads: what they have written in parts is whole."""
    draft.emit("barrier", None, 0, own=OWN_SIGNAL, shares=PARTS)


def embeddings(draft: Draft, group: Group) -> None:
    """Token and position of the newest row."""
    first, last = group.nodes
    rows, _, width = last.results[0][0]
    draft.emit(
        "embed_row", last, rows * width, table=draft.value(first.inputs[0]), positions=draft.value(last.inputs[1]),
        tokens=draft.value(first.inputs[1]), position=draft.inputs["position"], out=draft.result(last), rows=rows,
        width=width, part=PART, parts=PARTS,
    )  # fmt: skip
    meet(draft)


def normalised(draft: Draft, group: Group) -> None:
    """Every thread normalises the whole row for itself: cheaper than to meet once more."""
    (node,) = group.nodes
    draft.result(node).kind = "own"
    draft.saved(node, "rstd", (math.prod(node.results[0][0][:-1]),)).kind = "own"
    if len(node.inputs) > 1:
        draft.saved(node, "xhat", node.results[0][0]).kind = "own"
    layer_norm.forward(draft, group)


def product(draft: Draft, group: Group) -> None:
    """x W with what surrounds it: bias, gate or the residual stream."""
    node, last = linear.linear_node(group), group.nodes[-1]
    weight, transposed = linear.weight_of(group)
    x, out = draft.value(node.inputs[0]), draft.result(last)
    biased, added = len(node.inputs) > 2, last.equation.name == "residual"
    gate = {"gelu": GELU, "relu": RELU}.get(last.equation.name, NONE)
    rows, inner, width = math.prod(out.shape[:-1]), x.shape[-1], out.shape[-1]
    draft.emit(
        "row_product", last, 2 * rows * inner * width, x=x, weight=draft.value(weight),
        bias=draft.value(node.inputs[2]) if biased else 0, stream=draft.value(last.inputs[0]) if added else 0,
        out=out, rows=rows, inner=inner, width=width, biased=int(biased), added=int(added), gate=gate,
        transposed=int(transposed), part=PART, parts=PARTS,
    )  # fmt: skip
    meet(draft)


def attention(draft: Draft, group: Group) -> None:
    """The newest position against the cache."""
    rows, heads, _, width = group.nodes[3].results[0][0]
    keys, values = draft.caches[_layer(draft, group)]
    room = keys.shape[-1]
    scores = draft.scratch(group.nodes[1], "scores", (room,))
    scores.kind = "own"
    draft.emit(
        "attend", group.nodes[3], 4 * rows * heads * width * room, qkv=draft.value(group.nodes[0].inputs[0]),
        keys=keys, values=values, scores=scores, out=draft.result(group.nodes[4]),
        position=draft.inputs["position"], rows=rows,
        heads=heads, width=width, room=room, part=PART, parts=PARTS,
    )  # fmt: skip
    meet(draft)


def filling_attention(draft: Draft, group: Group) -> None:
    """Prefill: attention over the whole prompt, and its keys and values into the cache."""
    batch, heads, steps, width = group.nodes[3].results[0][0]
    keys, values = draft.caches[_layer(draft, group)]
    draft.emit(
        "store_keys", group.nodes[0], 0, qkv=draft.value(group.nodes[0].inputs[0]), keys=keys, values=values,
        batch=batch, heads=heads, steps=steps, width=width, room=keys.shape[-1],
    )  # fmt: skip
    causal_self_attention.forward(draft, group)
