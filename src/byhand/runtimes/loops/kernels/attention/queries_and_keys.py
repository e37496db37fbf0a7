"""Kernels of the norms and `rotary` between `split_qkv` and the scores: queries and keys in packed rows.

Head h of a row begins at column h D; the H query heads precede the K key heads. Without a norm each pair is rotated
in place, since nothing else reads it. With one the result is another array: the backward pass needs x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.engine.graph.operations import arithmetic_of
from byhand.runtimes.loops.kernels.attention.angles import angles_of
from byhand.runtimes.loops.kernels.attention.chain import Chain
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import PART, PARTS, Buffer, Operand, Place

F = np.float32


@compiled
def rotate(memory, x, y, cos, sin, pairs, neighbours, sign):
    """y = x with its pairs rotated by the angles, or back if the sign is -1; y may be x."""
    c, s = vector(memory, cos, pairs), vector(memory, sin, pairs)
    if neighbours:
        a, o = vector(memory, x, 2 * pairs), vector(memory, y, 2 * pairs)
        for p in range(pairs):
            left, right, sine = a[2 * p], a[2 * p + 1], sign * s[p]
            o[2 * p] = left * c[p] - right * sine
            o[2 * p + 1] = right * c[p] + left * sine
    else:
        a, b = vector(memory, x, pairs), vector(memory, x + pairs, pairs)
        o, u = vector(memory, y, pairs), vector(memory, y + pairs, pairs)
        for p in range(pairs):
            left, right, sine = a[p], b[p], sign * s[p]
            o[p] = left * c[p] - right * sine
            u[p] = right * c[p] + left * sine


@compiled
def rstd_of(memory, x, eps, width):
    """Return 1 / sqrt(avg(x^2) + eps)."""
    a, squares = vector(memory, x, width), F(0)
    for c in range(width):
        squares += a[c] * a[c]
    return F(1.0) / np.sqrt(squares / F(width) + memory[eps])


@compiled
def span_of(s, heads, kv_heads, width, whole):
    """Return, for span s of a row that is normalised together: whether it is of queries, first column, width."""
    if whole:
        return s == 0, s * heads * width, (kv_heads if s else heads) * width
    return s < heads, s * width, width


@kernel(computes="rotary heads_rms_norm")
def query_key(memory, x, y, angles, eps, q_gain, k_gain, rows, steps, row_x, row_y, heads, kv_heads, width,
              pairs, neighbours, gained, whole, part, parts):  # fmt: skip
    """y = queries and keys of x, normalised if there is an eps, rotated if there are pairs, this thread's rows.

    angles  cosines (steps, pairs), then sines
    whole   normalise across all query heads, and across all key heads
    """
    for i in range(part * rows // parts, (part + 1) * rows // parts):
        cos = angles + i % steps * pairs
        if eps:
            for s in range(2 if whole else heads + kv_heads):
                is_query, first, size = span_of(s, heads, kv_heads, width, whole)
                a = x + i * row_x + first
                r = rstd_of(memory, a, eps, size)
                n, o = vector(memory, a, size), vector(memory, y + i * row_y + first, size)
                if gained:
                    g = vector(memory, q_gain if is_query else k_gain, size)
                    for c in range(size):
                        o[c] = n[c] * r * g[c]
                else:
                    for c in range(size):
                        o[c] = n[c] * r
        for h in range(heads + kv_heads):
            to = y + i * row_y + h * width
            a = to if eps else x + i * row_x + h * width
            if pairs:
                rotate(memory, a, to, cos, cos + steps * pairs, pairs, neighbours, F(1.0))
            if a != to:
                for c in range(2 * pairs, width):
                    memory[to + c] = memory[a + c]


@kernel
def query_key_back(memory, d, x, angles, eps, q_gain, k_gain, d_q_gain, d_k_gain, rows, steps, row, heads,
                   kv_heads, width, pairs, neighbours, gained, whole, adds_q, adds_k):  # fmt: skip
    """d, the cotangent of `query_key`'s y, becomes that of x; d_gain are sums over rows and heads."""
    if gained and not adds_q:
        vector(memory, d_q_gain, heads * width if whole else width)[:] = F(0)
    if gained and not adds_k:
        vector(memory, d_k_gain, kv_heads * width if whole else width)[:] = F(0)
    for i in range(rows):
        cos = angles + i % steps * pairs
        if pairs:
            for h in range(heads + kv_heads):
                at = d + i * row + h * width
                rotate(memory, at, at, cos, cos + steps * pairs, pairs, neighbours, F(-1.0))
        if eps:
            for s in range(2 if whole else heads + kv_heads):
                is_query, first, size = span_of(s, heads, kv_heads, width, whole)
                a = x + i * row + first
                r = rstd_of(memory, a, eps, size)
                n, o = vector(memory, a, size), vector(memory, d + i * row + first, size)
                if gained:
                    g = vector(memory, q_gain if is_query else k_gain, size)
                    collected = vector(memory, d_q_gain if is_query else d_k_gain, size)
                    for c in range(size):
                        collected[c] += o[c] * n[c] * r
                    for c in range(size):
                        o[c] *= g[c]
                mean = F(0)
                for c in range(size):
                    mean += o[c] * n[c]
                mean *= r * r * (F(1.0) / F(size))
                for c in range(size):
                    o[c] = r * (o[c] - n[c] * mean)


def operands_of(builder: Builder, chain: Chain) -> dict[str, Operand]:
    """Return the operands for norm, rotation and sizes, common to both kernels."""
    sizes, rotation = chain.sizes, chain.rotations[0].static if chain.rotations else {}
    gains = [builder.value(node.inputs[1]) if len(node.inputs) > 1 else 0 for node in chain.norms or ()] or [0, 0]
    return {
        "angles": angles_of(builder, chain),
        "eps": builder.constant(chain.norms[0].static.get("eps", 1e-5)) if chain.norms else 0, "q_gain": gains[0],
        "k_gain": gains[1], "heads": sizes["heads"], "kv_heads": chain.kv_heads, "width": sizes["width"],
        "pairs": rotation.get("width", 0) // 2, "neighbours": int(rotation.get("pairing") == "neighbours"),
        "gained": int(gains[0] != 0),
        "whole": int(bool(chain.norms) and chain.norms[0].equation.name == "heads_rms_norm"),
    }  # fmt: skip


def prepared(builder: Builder, chain: Chain) -> Buffer:
    """Return the buffer with the final queries and keys at the start of each row: the projection's, or another."""
    packed = chain.split.inputs[0]
    in_place = builder.graph.only(packed, "linear") and not chain.norms and not builder.decodes
    if not chain.prepared or in_place:
        return builder.value(packed)
    batch, steps, columns = packed.shape
    made = builder.saved(
        chain.prepared[-1], "queries and keys", (batch, steps, columns - chain.kv_heads * chain.sizes["width"])
    )
    builder.replicate(made)
    return made


def emit(builder: Builder, chain: Chain, sequence: int | None = None) -> None:
    """Append the call for one sequence of the batch, or for all."""
    if not chain.prepared:
        return
    packed, made = builder.value(chain.split.inputs[0]), prepared(builder, chain)
    batch, steps, _ = packed.shape
    count, first = (batch, 0) if sequence is None else (1, sequence * steps)
    size = count * steps * (chain.sizes["heads"] + chain.kv_heads) * chain.sizes["width"]
    call = builder.emit(
        "query_key", chain.prepared[0], _operations(chain, 0) * count // batch, 8 * size,
        x=packed.at(first * packed.width), y=made.at(first * made.width), rows=count * steps,
        steps=count if builder.decodes else steps, row_x=packed.width, row_y=made.width,
        **operands_of(builder, chain), part=0 if builder.decodes else PART, parts=1 if builder.decodes else PARTS,
    )  # fmt: skip
    call.label = _label(chain)


def emit_back(
    builder: Builder, chain: Chain, d_packed: Buffer, sequence: int, targets: list[tuple[Any, Any]]
) -> None:
    """Append the call for one sequence, after attention's; `targets` are those of the gains' gradients."""
    if not chain.prepared:
        return
    packed = builder.value(chain.split.inputs[0])
    batch, steps, row = packed.shape
    at, (d_q, adds_q), (d_k, adds_k) = sequence * steps * row, *(targets or [(0, 0), (0, 0)])
    x: Place | int = packed.at(at) if chain.norms else 0
    count = steps * (chain.sizes["heads"] + chain.kv_heads) * chain.sizes["width"]
    touched = (12 if chain.norms else 8) * count
    call = builder.emit(
        "query_key_back", chain.prepared[0], _operations(chain, 1) // batch, touched,
        d=d_packed.at(at), x=x, d_q_gain=d_q, d_k_gain=d_k, rows=steps, steps=steps, row=row,
        **operands_of(builder, chain), adds_q=1 if sequence else adds_q, adds_k=1 if sequence else adds_k,
    )  # fmt: skip
    call.label = _label(chain)


def gain_targets(builder: Builder, chain: Chain) -> list[tuple[Any, Any]]:
    """Return where the gains' gradients go, and whether they accumulate."""
    return [builder.gradient(node.inputs[1]) for node in chain.norms or () if len(node.inputs) > 1]


def _label(chain: Chain) -> str:
    return " + ".join(dict.fromkeys(node.equation.name for node in chain.prepared))


def _operations(chain: Chain, way: int) -> int:
    """Return the operations of norm and rotation, forward (0) or backward (1)."""
    return sum(arithmetic_of(node)[way] for node in chain.prepared)
