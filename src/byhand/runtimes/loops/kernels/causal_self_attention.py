"""Kernels of the middle of `causal_self_attention`: split_qkv, scores, softmax, mix and merge_heads in one.

Queries, keys and values are read where the projection left them: head h of row t begins at column h D, with the
row length as leading dimension, so that splitting and merging heads moves no number. Queries are taken in blocks,
and a block of causal scores ends at its last visible key: of the masked half, only the corner of a block is computed.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import math
from typing import Any

import numpy as np

from byhand.runtimes.loops.draft import Draft, Group
from byhand.runtimes.loops.kernels.exponential import exp
from byhand.runtimes.loops.kernels.largest import largest
from byhand.runtimes.loops.native import compiled, sgemm, vector

F = np.float32
BLOCK = 64  # queries in a block: smaller skips more of the masked half, but makes slower products


@compiled
def softmax_rows(memory, words, scores, first, rows, stride, keys, causal):
    """Softmax in place; row i sees keys up to first + i, the rest of the block's keys get weight 0.

    The loop with exp runs over all keys of the block: whole vectors cost less than a shorter row's loose end.
    """
    for i in range(rows):
        p = vector(memory, scores + i * stride, keys)
        visible = first + i + 1 if causal else keys
        m = largest(words, scores + i * stride, visible)
        z = F(0)
        for s in range(keys):
            e = exp(p[s] - m) if s < visible else F(0)
            p[s] = e
            z += e
        z = F(1.0) / z
        for s in range(keys):
            p[s] *= z


@compiled
def softmax_rows_back(memory, d_weights, weights, rows, stride, keys):
    """d = p (d - sum of d p), in place; 0 where masked, since p is."""
    for i in range(rows):
        d, p = vector(memory, d_weights + i * keys, keys), vector(memory, weights + i * stride, keys)
        dot = F(0)
        for s in range(keys):
            dot += d[s] * p[s]
        for s in range(keys):
            d[s] = p[s] * (d[s] - dot)


@compiled
def attention(memory, words, blas, qkv, weights, out, batch, heads, steps, width, causal):
    """out[b,t,h D:] = sum over s of weights[b,h,t,s] v[b,s,h D:]; keeps the weights."""
    c, row = heads * width, 3 * heads * width
    scale = F(1.0 / math.sqrt(width))
    for b in range(batch):
        for h in range(heads):
            q = qkv + b * steps * row + h * width
            p = weights + (b * heads + h) * steps * steps
            o = out + b * steps * c + h * width
            for first in range(0, steps, BLOCK):
                rows = min(BLOCK, steps - first)
                keys = first + rows if causal else steps
                block = p + first * steps
                sgemm(blas[0], memory, q + first * row, q + c, block, rows, keys, width, row, row, steps, 0, 1,
                      scale, F(0.0))  # fmt: skip
                softmax_rows(memory, words, block, first, rows, steps, keys, causal)
                sgemm(blas[0], memory, block, q + 2 * c, o + first * c, rows, width, keys, steps, row, c, 0, 0,
                      F(1.0), F(0.0))  # fmt: skip


@compiled
def attention_back(memory, blas, d_out, qkv, weights, scores, d_qkv, batch, heads, steps, width, causal):
    """Cotangents of q, k and v into their columns of d_qkv; `scores` holds one block's d_scores."""
    c, row = heads * width, 3 * heads * width
    scale = F(1.0 / math.sqrt(width))
    for b in range(batch):
        for h in range(heads):
            q = qkv + b * steps * row + h * width
            d_q = d_qkv + b * steps * row + h * width
            p = weights + (b * heads + h) * steps * steps
            d_o = d_out + b * steps * c + h * width
            last = (steps - 1) // BLOCK * BLOCK
            for first in range(last, -1, -BLOCK):  # the last block sees every key: it writes, the others add
                rows = min(BLOCK, steps - first)
                keys = first + rows if causal else steps
                adds = F(0.0) if first == last else F(1.0)
                block, d_block = p + first * steps, d_o + first * c
                sgemm(blas[0], memory, block, d_block, d_q + 2 * c, keys, width, rows, steps, c, row, 1, 0,
                      F(1.0), adds)  # fmt: skip
                sgemm(blas[0], memory, d_block, q + 2 * c, scores, rows, keys, width, c, row, keys, 0, 1,
                      F(1.0), F(0.0))  # fmt: skip
                softmax_rows_back(memory, scores, block, rows, steps, keys)
                sgemm(blas[0], memory, scores, q + c, d_q + first * row, rows, width, keys, keys, row, row, 0, 0,
                      scale, F(0.0))  # fmt: skip
                sgemm(blas[0], memory, scores, q + first * row, d_q + c, keys, width, rows, keys, row, row, 1, 0,
                      scale, adds)  # fmt: skip


def match(node: Any, graph: Any) -> tuple[Any, ...] | None:
    """split_qkv -> attention_scores -> softmax (causal or not) -> mix -> merge_heads, as many keys as queries."""
    mix = graph.only(node.inputs[0], "mix")
    softmax = mix and graph.only(mix.inputs[0], "causal_softmax", "softmax")
    scores = softmax and graph.only(softmax.inputs[0], "attention_scores")
    if not (mix and softmax and scores):
        return None
    parts = [graph.only(t, "split_qkv") for t in (*scores.inputs, mix.inputs[1])]
    slots = [t.index for t in (*scores.inputs, mix.inputs[1])]
    if parts[0] is None or any(part is not parts[0] for part in parts) or slots != [0, 1, 2]:
        return None
    return parts[0], scores, softmax, mix, node


def _sizes(group: Group) -> dict[str, int]:
    batch, heads, steps, width = group.nodes[3].results[0][0]
    causal = int(group.nodes[2].equation.name == "causal_softmax")
    return {"batch": batch, "heads": heads, "steps": steps, "width": width, "causal": causal}


def products(batch: int, heads: int, steps: int, width: int, causal: int) -> int:
    """Return the FLOPs of one (T, S, D) product over all heads, without the blocks that the mask skips."""
    visible = sum(
        min(BLOCK, steps - f) * (min(f + BLOCK, steps) if causal else steps) for f in range(0, steps, BLOCK)
    )
    return 2 * batch * heads * visible * width


def forward(draft: Draft, group: Group) -> None:
    """One call for all heads."""
    sizes = _sizes(group)
    shape = (sizes["batch"], sizes["heads"], sizes["steps"], sizes["steps"])
    draft.emit(
        "attention", group.nodes[3], 2 * products(**sizes), qkv=draft.value(group.nodes[0].inputs[0]),
        weights=draft.saved(group.nodes[2], "weights", shape), out=draft.result(group.nodes[4]), **sizes,
    )  # fmt: skip


def backward(draft: Draft, group: Group) -> None:
    """One call for all heads; the projection's cotangent is written once, so nothing may stand there yet."""
    sizes = _sizes(group)
    shape = (sizes["batch"], sizes["heads"], sizes["steps"], sizes["steps"])
    d_out = draft.cotangent(group.nodes[4])
    qkv = group.nodes[0].inputs[0]
    d_qkv = draft.fresh_gradient(qkv)
    draft.emit(
        "attention_back", group.nodes[3], 4 * products(**sizes), d_out=d_out, qkv=draft.value(qkv),
        weights=draft.saved(group.nodes[2], "weights", shape),
        scores=draft.scratch(group.nodes[1], "d_scores", (min(BLOCK, sizes["steps"]), sizes["steps"])),
        d_qkv=d_qkv, **sizes,
    )  # fmt: skip
    draft.join(qkv, d_qkv, group.nodes[0])
