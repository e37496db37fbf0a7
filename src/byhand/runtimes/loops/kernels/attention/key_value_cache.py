"""Kernels of attention with a KV cache: the newest position of each stream against all before, and filling the cache.

Keys and values lie as (B, H, D, S), positions side by side: scores are a sum of D rows, the mix is D dot products,
and both read in order. The room for positions is whole cache lines.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import math
from typing import Any

import numpy as np

from byhand.runtimes.loops.kernels.attention.causal_self_attention import chain, emit_attention, stride_of
from byhand.runtimes.loops.kernels.vector.arithmetic import exp, largest
from byhand.runtimes.loops.kernels.vector.vector_moves import ROWS
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import PART, PARTS
from byhand.runtimes.loops.lowering.rules import Group, Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import matrix, vector

F = np.float32


@kernel
def attend(memory, words, qkv, keys, values, scores, out, position, rows, heads, width, room, part, parts):
    """Attention of the newest position to all so far, this thread's heads; stores its key and value first."""
    c, row = heads * width, 3 * heads * width
    t = words[position]
    n = t + 1
    scale = F(1.0 / math.sqrt(width))
    p = vector(memory, scores, n)
    for head in range(part, rows * heads, parts):
        b, h = head // heads, head % heads
        start = qkv + b * row + h * width
        key, value = keys + head * width * room, values + head * width * room
        k, v = matrix(memory, key, width, room), matrix(memory, value, width, room)
        for d in range(width):
            k[d, t] = memory[start + c + d]
            v[d, t] = memory[start + 2 * c + d]
        add_rows(memory, start, key, scores, width, room, n)
        m = largest(words, scores, n)
        z = F(0)
        for s in range(n):
            e = exp((p[s] - m) * scale)
            p[s] = e
            z += e
        mix_rows(memory, scores, value, out + b * c + h * width, width, room, n, F(1.0) / z)


@compiled
def add_rows(memory, x, rows, out, count, width, n):
    """out = sum over i of x[i] rows[i,:], the first n columns of `width`; four rows in a pass over out."""
    a, o = vector(memory, x, count), vector(memory, out, n)
    o[:] = F(0)
    fours = count // 4 * 4
    for i in range(0, fours, 4):
        r0, r1 = vector(memory, rows + i * width, n), vector(memory, rows + (i + 1) * width, n)
        r2, r3 = vector(memory, rows + (i + 2) * width, n), vector(memory, rows + (i + 3) * width, n)
        a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
        for c in range(n):
            o[c] += (a0 * r0[c] + a1 * r1[c]) + (a2 * r2[c] + a3 * r3[c])
    for i in range(fours, count):
        r0, a0 = vector(memory, rows + i * width, n), a[i]
        for c in range(n):
            o[c] += a0 * r0[c]


@compiled
def mix_rows(memory, weights, rows, out, count, width, n, scale):
    """out[d] = scale * sum over s of weights[s] rows[d,s], s below n; four rows in a pass over the weights."""
    p, o = vector(memory, weights, n), vector(memory, out, count)
    fours = count // 4 * 4
    for d in range(0, fours, 4):
        r0, r1 = vector(memory, rows + d * width, n), vector(memory, rows + (d + 1) * width, n)
        r2, r3 = vector(memory, rows + (d + 2) * width, n), vector(memory, rows + (d + 3) * width, n)
        s0, s1, s2, s3 = F(0), F(0), F(0), F(0)
        for s in range(n):
            s0 += p[s] * r0[s]
            s1 += p[s] * r1[s]
            s2 += p[s] * r2[s]
            s3 += p[s] * r3[s]
        o[d], o[d + 1], o[d + 2], o[d + 3] = scale * s0, scale * s1, scale * s2, scale * s3
    for d in range(fours, count):
        r0, s0 = vector(memory, rows + d * width, n), F(0)
        for s in range(n):
            s0 += p[s] * r0[s]
        o[d] = scale * s0


def match(node: Any, graph: Any) -> tuple[Any, ...] | None:
    """split_qkv -> (cache) -> attention_scores -> causal_softmax -> mix -> merge_heads."""
    if graph.cache is None or (found := chain(node, graph)) is None or found[2].equation.name != "causal_softmax":
        return None
    return found if graph.cache.layer_of(found[1].inputs[1], found[3].inputs[1]) is not None else None


def _layer(builder: Builder, group: Group) -> int:
    cache: Any = builder.graph.cache
    return cache.layer_of(group.nodes[1].inputs[1], group.nodes[3].inputs[1])


def decode(builder: Builder, group: Group) -> None:
    """The newest position against the cache."""
    split, scored, _, mix, merge = group.nodes
    rows, heads, _, width = mix.results[0][0]
    keys, values = builder.caches[_layer(builder, group)]
    room = keys.width
    seen = room // 2  # the cost is that of the middle of the window
    scores = builder.scratch(scored, "scores", (room,), "own")
    builder.emit(
        "attend", mix, 4 * rows * heads * width * seen, touched=8 * rows * heads * width * seen,
        qkv=builder.value(split.inputs[0]), keys=keys, values=values, scores=scores, out=builder.result(merge),
        position=builder.inputs["position"], rows=rows, heads=heads, width=width, room=room, part=PART, parts=PARTS,
    )  # fmt: skip
    builder.meet()


def fill(builder: Builder, group: Group) -> None:
    """Prefill: attention over the whole prompt as in training, and its keys and values into the cache."""
    keys, values = builder.caches[_layer(builder, group)]
    steps = group.nodes[3].results[0][0][2]
    scores = builder.scratch(group.nodes[1], "scores", (ROWS, stride_of(steps)), "own")
    emit_attention(builder, group, scores, keys.size + values.size, keys, values, keys.width)


COVERS = "split_qkv", "attention_scores", "causal_softmax", "mix", "merge_heads"
register(Rule(
    name="attention", covers=COVERS, kernel="attend", stages=("decode",), match=match, forward=decode,
    reason="the newest key and value are stored and used in the same pass; only positions that exist are visited",
))  # fmt: skip
register(Rule(
    name="attention", covers=COVERS, kernel="attention", stages=("fill",), match=match, forward=fill,
    reason="as in training, and the prompt's keys and values go into the cache",
))  # fmt: skip
