"""Angles of the rotation: a table for positions from 0, or a kernel for given positions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from byhand.equations.rotary import Scaling, frequencies, magnitude
from byhand.runtimes.loops.kernels.attention.chain import Chain
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer

F, U = np.float32, np.uint64
TWO_PI = Fraction("6.28318530717958647692528676655900576839")
RADIANS = float(TWO_PI / 2**64)  # per unit of a phase


@kernel
def angles_at(memory, words, position, turns, scale, angles, rows, pairs):
    """angles = cosines (rows, pairs), then sines, at each row's position; accurate to float32 for any position.

    scale  m, by which both are multiplied
    turns  each pair's rotation per position in units of 2^-64 turns, as two words: the product with the position
           wraps around exactly, as angles do
    """
    m = np.float64(memory[scale])
    for i in range(rows * pairs):
        p = i % pairs
        high, low = np.uint32(words[turns + 2 * p]), np.uint32(words[turns + 2 * p + 1])
        turn = U(words[position + i // pairs]) * (U(high) << U(32) | U(low))
        quarter = (turn + (U(1) << U(61))) >> U(62)
        r = np.float64(np.int64(turn - (quarter << U(62)))) * RADIANS  # within an eighth of a turn
        z = r * r  # Taylor series with a remainder below 1e-11
        sin = r * (1 + z * (-1 / 6 + z * (1 / 120 + z * (-1 / 5040 + z * (1 / 362880 + z * (-1 / 39916800))))))
        cos = 1 + z * (-1 / 2 + z * (1 / 24 + z * (-1 / 720 + z * (1 / 40320 + z * (-1 / 3628800)))))
        if quarter & U(1):
            cos, sin = -sin, cos
        if quarter & U(2):
            cos, sin = -cos, -sin
        memory[angles + i], memory[angles + rows * pairs + i] = F(m * cos), F(m * sin)


def angles_of(builder: Builder, chain: Chain) -> Buffer | int:
    """Return the table of angles at the plan's positions: cosines, then sines; 0 without a rotation."""
    if not chain.rotations:
        return 0
    rotation = chain.rotations[0]
    given = builder.decodes or builder.continues
    return _at_positions(builder, rotation) if given else _from_0(builder, rotation, chain.sizes["steps"])


def _from_0(builder: Builder, rotation: Any, steps: int) -> Buffer:
    """Return the table for positions 0 to steps - 1 (2, steps, pairs), a constant of the plan."""
    turns = _turns(rotation)
    each = "angles", *turns, steps
    if each not in builder.constants:
        angles = np.arange(steps)[:, None] * np.array(frequencies(*turns))
        made = Buffer("angles", (2, *angles.shape), "constant")
        builder.constants[each] = made, magnitude(turns[-1]) * np.stack([np.cos(angles), np.sin(angles)])
    return builder.constants[each][0]


def _at_positions(builder: Builder, rotation: Any) -> Buffer:
    """Return the table for the rows' positions (2, rows, pairs), computed by the first attention."""
    turns = _turns(rotation)
    name = f"angles {turns}"
    if name not in builder.inputs:
        words, m = phases_of(*turns), np.array([magnitude(turns[-1])], np.float32)
        made = Buffer("phases", words.shape, "constant", "int32"), Buffer("scale", m.shape, "constant")
        phases, _ = builder.constants.setdefault(("phases", *turns), (made[0], words))
        scale, _ = builder.constants.setdefault(("scale", *turns), (made[1], m))
        rows = builder.inputs["position"].size
        builder.inputs[name] = Buffer("angles", (2, rows, len(words)), "own" if builder.decodes else "value")
        builder.emit(
            "angles_at", rotation, 0, position=builder.inputs["position"], turns=phases, scale=scale,
            angles=builder.inputs[name], rows=rows, pairs=len(words),
        )  # fmt: skip
    return builder.inputs[name]


def _turns(rotation: Any) -> tuple[float, int, Scaling | None]:
    """Return the settings that determine an application's turns."""
    return rotation.static["base"], rotation.static["width"], rotation.static.get("scaling")


def phases_of(base: float, width: int, scaling: Scaling | None = None) -> np.ndarray:
    """Return each pair's angle at position 1 in units of 2^-64 turns: upper and lower word (width / 2, 2)."""
    turns = [round(Fraction(f) * 2**64 / TWO_PI) % 2**64 for f in frequencies(base, width, scaling)]
    return np.array([[turn >> 32, turn & 0xFFFFFFFF] for turn in turns], np.uint32).view(np.int32)
