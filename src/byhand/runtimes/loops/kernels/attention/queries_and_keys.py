"""Kernels of `rms_norm` and `rotary` between `split_qkv` and the scores: queries and keys in packed rows.

Head h of a row begins at column h D; the H heads of queries stand before the K heads of keys. Without a norm each
pair is turned where it lies, since nothing else reads it. With one the result is another array: going back needs x.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from byhand.equations.rotary import frequencies
from byhand.runtimes.loops.kernels.attention.chain import Chain
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import PART, PARTS, Buffer, Operand, Place
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import vector

F, U = np.float32, np.uint64
TWO_PI = Fraction("6.28318530717958647692528676655900576839")
RADIANS = float(TWO_PI / 2**64)  # in a unit of a phase


@compiled
def rotate(memory, x, y, cos, sin, pairs, neighbours, sign):
    """y = x with its pairs turned by the angles, or back if the sign is -1; y may be x."""
    c, s = vector(memory, cos, pairs), vector(memory, sin, pairs)
    if neighbours:
        a, o = vector(memory, x, 2 * pairs), vector(memory, y, 2 * pairs)
        for p in range(pairs):
            left, right, turn = a[2 * p], a[2 * p + 1], sign * s[p]
            o[2 * p] = left * c[p] - right * turn
            o[2 * p + 1] = right * c[p] + left * turn
    else:
        a, b = vector(memory, x, pairs), vector(memory, x + pairs, pairs)
        o, u = vector(memory, y, pairs), vector(memory, y + pairs, pairs)
        for p in range(pairs):
            left, right, turn = a[p], b[p], sign * s[p]
            o[p] = left * c[p] - right * turn
            u[p] = right * c[p] + left * turn


@compiled
def rstd_of(memory, x, eps, width):
    """Return 1 / sqrt(avg(x^2) + eps)."""
    a, squares = vector(memory, x, width), F(0)
    for c in range(width):
        squares += a[c] * a[c]
    return F(1.0) / np.sqrt(squares / F(width) + memory[eps])


@kernel(computes="rotary")
def query_key(memory, x, y, angles, eps, q_gain, k_gain, rows, steps, row_x, row_y, heads, kv_heads, width,
              pairs, neighbours, gained, part, parts):  # fmt: skip
    """y = the queries and keys of x, normalised if there is an eps and turned if there are pairs, this thread's rows.

    angles  cosines (steps, pairs), then sines
    """
    for i in range(part * rows // parts, (part + 1) * rows // parts):
        cos = angles + i % steps * pairs
        for h in range(heads + kv_heads):
            a, to = x + i * row_x + h * width, y + i * row_y + h * width
            if eps:
                r = rstd_of(memory, a, eps, width)
                n, o = vector(memory, a, width), vector(memory, to, width)
                if gained:
                    g = vector(memory, q_gain if h < heads else k_gain, width)
                    for c in range(width):
                        o[c] = n[c] * r * g[c]
                else:
                    for c in range(width):
                        o[c] = n[c] * r
                a = to
            if pairs:
                rotate(memory, a, to, cos, cos + steps * pairs, pairs, neighbours, F(1.0))
            if a != to:
                for c in range(2 * pairs, width):
                    memory[to + c] = memory[a + c]


@kernel
def query_key_back(memory, d, x, angles, eps, q_gain, k_gain, d_q_gain, d_k_gain, rows, steps, row, heads,
                   kv_heads, width, pairs, neighbours, gained, adds_q, adds_k):  # fmt: skip
    """d, the cotangent of what `query_key` made, becomes that of x; d_gain are sums over rows and heads."""
    if gained and not adds_q:
        vector(memory, d_q_gain, width)[:] = F(0)
    if gained and not adds_k:
        vector(memory, d_k_gain, width)[:] = F(0)
    inverse = F(1.0) / F(width)
    for i in range(rows):
        cos = angles + i % steps * pairs
        for h in range(heads + kv_heads):
            at = d + i * row + h * width
            if pairs:
                rotate(memory, at, at, cos, cos + steps * pairs, pairs, neighbours, F(-1.0))
            if eps:
                a = x + i * row + h * width
                r = rstd_of(memory, a, eps, width)
                n, o = vector(memory, a, width), vector(memory, at, width)
                if gained:
                    g = vector(memory, q_gain if h < heads else k_gain, width)
                    collected = vector(memory, d_q_gain if h < heads else d_k_gain, width)
                    for c in range(width):
                        collected[c] += o[c] * n[c] * r
                    for c in range(width):
                        o[c] *= g[c]
                mean = F(0)
                for c in range(width):
                    mean += o[c] * n[c]
                mean *= r * r * inverse
                for c in range(width):
                    o[c] = r * (o[c] - n[c] * mean)


@kernel
def angles_at(memory, words, position, turns, angles, pairs):
    """angles = cosines, then sines, of a position's angles; exact to float32 however large the position is.

    turns  each pair's turn a position in units of 2^-64 turns, as two words: their product with the position wraps
           around as angles do, and loses nothing
    """
    for p in range(pairs):
        high, low = np.uint32(words[turns + 2 * p]), np.uint32(words[turns + 2 * p + 1])
        turn = U(words[position]) * (U(high) << U(32) | U(low))
        quarter = (turn + (U(1) << U(61))) >> U(62)
        r = np.float64(np.int64(turn - (quarter << U(62)))) * RADIANS  # within an eighth of a turn
        z = r * r  # Taylor series: the terms left out are below 1e-11
        sin = r * (1 + z * (-1 / 6 + z * (1 / 120 + z * (-1 / 5040 + z * (1 / 362880 + z * (-1 / 39916800))))))
        cos = 1 + z * (-1 / 2 + z * (1 / 24 + z * (-1 / 720 + z * (1 / 40320 + z * (-1 / 3628800)))))
        if quarter & U(1):
            cos, sin = -sin, cos
        if quarter & U(2):
            cos, sin = -cos, -sin
        memory[angles + p], memory[angles + pairs + p] = F(cos), F(sin)


def pairs_of(chain: Chain) -> int:
    """Return the pairs of a head that are turned."""
    return chain.turns[0].static["width"] // 2 if chain.turns else 0


def angles_from_0(builder: Builder, chain: Chain) -> Buffer | int:
    """Return the table of positions 0 to steps - 1, a constant of the plan; 0 if nothing is turned."""
    if not chain.turns:
        return 0
    settings, steps = chain.turns[0].static, chain.sizes["steps"]
    each = "angles", settings["base"], settings["width"], steps
    if each not in builder.constants:
        angles = np.arange(steps)[:, None] * np.array(frequencies(settings["base"], settings["width"]))
        made = Buffer("angles", (2, *angles.shape), "constant")
        builder.constants[each] = made, np.stack([np.cos(angles), np.sin(angles)])
    return builder.constants[each][0]


def angles_at_position(builder: Builder, chain: Chain) -> Buffer | int:
    """Return the table of the position that decoding is at; the plan's first attention computes it."""
    if not chain.turns:
        return 0
    settings = chain.turns[0].static
    each = "phases", settings["base"], settings["width"]
    name = f"angles {settings['base']} {settings['width']}"
    if name not in builder.inputs:
        words = phases_of(*each[1:])
        phases, _ = builder.constants.setdefault(each, (Buffer("phases", words.shape, "constant", "int32"), words))
        angles = builder.inputs[name] = Buffer("angles", (2, len(words)), "own")
        builder.emit(
            "angles_at", chain.turns[0], 0, position=builder.inputs["position"], turns=phases, angles=angles,
            pairs=len(words),
        )  # fmt: skip
    return builder.inputs[name]


def phases_of(base: float, width: int) -> np.ndarray:
    """Return each pair's angle at position 1 in units of 2^-64 turns: its upper and its lower half (width / 2, 2)."""
    turns = [round(Fraction(f) * 2**64 / TWO_PI) % 2**64 for f in frequencies(base, width)]
    return np.array([[turn >> 32, turn & 0xFFFFFFFF] for turn in turns], np.uint32).view(np.int32)


def operands_of(builder: Builder, chain: Chain, angles: Buffer | int) -> dict[str, Operand]:
    """Return what both kernels are told of norm, rotation and sizes."""
    norm = chain.norms[0] if chain.norms else None
    gains = [builder.value(node.inputs[1]) if len(node.inputs) > 1 else 0 for node in chain.norms or ()] or [0, 0]
    sizes = chain.sizes
    return {
        "angles": angles, "eps": builder.constant(norm.static.get("eps", 1e-5)) if norm else 0, "q_gain": gains[0],
        "k_gain": gains[1], "heads": sizes["heads"], "kv_heads": chain.kv_heads, "width": sizes["width"],
        "pairs": pairs_of(chain), "gained": int(gains[0] != 0),
        "neighbours": int(bool(chain.turns) and chain.turns[0].static.get("pairing", "halves") == "neighbours"),
    }  # fmt: skip


def prepared(builder: Builder, chain: Chain, own: bool = False) -> Buffer:
    """Return the buffer whose rows begin with queries and keys as scores read them: the projection's, or another.

    own  each thread has one, and does the work of all: in decoding that is faster than another barrier
    """
    packed = chain.split.inputs[0]
    in_place = builder.graph.only(packed, "linear") and not chain.norms and not own
    if not chain.prepared or in_place:
        return builder.value(packed)
    batch, steps, columns = packed.shape
    made = builder.saved(
        chain.prepared[-1], "queries and keys", (batch, steps, columns - chain.kv_heads * chain.sizes["width"])
    )
    made.kind = "own" if own else "value"
    return made


def emit(
    builder: Builder, chain: Chain, made: Buffer, angles: Buffer | int, text: int | None = None, alone: bool = False
) -> None:
    """Append the call for one text of the batch, or for all; `alone` each thread does the work of all."""
    if not chain.prepared:
        return
    packed = builder.value(chain.split.inputs[0])
    batch, steps, _ = packed.shape
    texts, first = (batch, 0) if text is None else (1, text * steps)
    count = texts * steps * (chain.sizes["heads"] + chain.kv_heads) * chain.sizes["width"]
    call = builder.emit(
        "query_key", chain.prepared[0], _operations(chain, 0) * texts // batch, 8 * count,
        x=packed.at(first * packed.width), y=made.at(first * made.width), rows=texts * steps, steps=steps,
        row_x=packed.width, row_y=made.width, **operands_of(builder, chain, angles), part=0 if alone else PART,
        parts=1 if alone else PARTS,
    )  # fmt: skip
    call.label = _label(chain)


def emit_back(
    builder: Builder, chain: Chain, d_packed: Buffer, angles: Buffer | int, text: int, targets: list[tuple[Any, Any]]
) -> None:
    """Append the call for one text, which follows attention's; `targets` are of the gains' gradients, if any."""
    if not chain.prepared:
        return
    packed = builder.value(chain.split.inputs[0])
    batch, steps, row = packed.shape
    at, (d_q, adds_q), (d_k, adds_k) = text * steps * row, *(targets or [(0, 0), (0, 0)])
    x: Place | int = packed.at(at) if chain.norms else 0
    count = steps * (chain.sizes["heads"] + chain.kv_heads) * chain.sizes["width"]
    touched = (12 if chain.norms else 8) * count
    call = builder.emit(
        "query_key_back", chain.prepared[0], _operations(chain, 1) // batch, touched,
        d=d_packed.at(at), x=x, d_q_gain=d_q, d_k_gain=d_k, rows=steps, steps=steps, row=row,
        **operands_of(builder, chain, angles), adds_q=1 if text else adds_q, adds_k=1 if text else adds_k,
    )  # fmt: skip
    call.label = _label(chain)


def gain_targets(builder: Builder, chain: Chain) -> list[tuple[Any, Any]]:
    """Return where the gradients of the gains go, and whether they are added to what is there."""
    return [builder.gradient(node.inputs[1]) for node in chain.norms or () if len(node.inputs) > 1]


def _label(chain: Chain) -> str:
    return " + ".join(dict.fromkeys(node.equation.name for node in chain.prepared))


def _operations(chain: Chain, way: int) -> int:
    """Return the operations of norm and rotation, forward (0) or back (1)."""
    return sum(n.equation.flops(*(t.shape for t in n.inputs), **n.static)[way] for n in chain.prepared)
