"""Kernels of `rms_norm`, with and without a gain, for rows of x of any shape.

Without a gain the result is xhat, which the next linear layer keeps anyway. With one, the backward pass recomputes
xhat = x rstd: a multiplication costs less than another array.
"""

import numpy as np

from byhand.runtimes.loops.kernels.products.rounding import copy_row
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder

F = np.float32


@kernel(rows="rows", moves={"x": "width", "y": "width", "rstd": 1})
def rms_norm(memory, x, gain, y, rstd, eps, copy, format, rows, width, scaled):
    """y = gain * x * rstd, or without the gain unless `scaled`, and a copy for products."""
    a, o, g = matrix(memory, x, rows, width), matrix(memory, y, rows, width), vector(memory, gain, width)
    r = vector(memory, rstd, rows)
    inverse = F(1.0) / F(width)
    for i in range(rows):
        squares = F(0)
        for c in range(width):
            squares += a[i, c] * a[i, c]
        scale = F(1.0) / np.sqrt(squares * inverse + memory[eps])
        r[i] = scale
        if scaled:
            for c in range(width):
                o[i, c] = g[c] * (a[i, c] * scale)
        else:
            for c in range(width):
                o[i, c] = a[i, c] * scale
        copy_row(memory, y, copy, format, i, i, rows, width)


@kernel
def rms_norm_back(memory, d_y, x, rstd, gain, d_gain, d_x, rows, width, scaled, gain_adds, adds):
    """d_x = rstd * (h - xhat * avg(h * xhat)), d_gain = sum over rows of d_y * xhat; d_y becomes h = gain * d_y.

    x  the input if `scaled`; else xhat, without a gain
    """
    d, a, o = matrix(memory, d_y, rows, width), matrix(memory, x, rows, width), matrix(memory, d_x, rows, width)
    r, g, collected = vector(memory, rstd, rows), vector(memory, gain, width), vector(memory, d_gain, width)
    inverse = F(1.0) / F(width)
    if scaled and not gain_adds:
        collected[:] = F(0)
    for i in range(rows):
        to_xhat = r[i] if scaled else F(1.0)
        if scaled:
            for c in range(width):
                collected[c] += d[i, c] * (a[i, c] * to_xhat)
            for c in range(width):
                d[i, c] *= g[c]
        aligned = F(0)
        for c in range(width):
            aligned += d[i, c] * a[i, c]
        scale, along = r[i], aligned * inverse * to_xhat * to_xhat
        if adds:
            for c in range(width):
                o[i, c] += scale * (d[i, c] - a[i, c] * along)
        else:
            for c in range(width):
                o[i, c] = scale * (d[i, c] - a[i, c] * along)


def forward(builder: Builder, group: Group) -> None:
    """One call for norm and gain."""
    (node,) = group.nodes
    x, *gain = map(builder.value, node.inputs)
    y, rstd = builder.result(node), builder.saved(node, "rstd", (x.rows,))
    builder.replicate(y, rstd)
    builder.emit(
        "rms_norm", node, x=x, gain=gain[0] if gain else 0, y=y, rstd=rstd,
        eps=builder.constant(node.static.get("eps", 1e-5)), copy=builder.copy(y), rows=x.rows, width=x.width,
        scaled=len(gain),
    )  # fmt: skip


def backward(builder: Builder, group: Group) -> None:
    """One call for the derivatives of gain and root mean square."""
    (node,) = group.nodes
    x, *gain = node.inputs
    d_y = builder.cotangent(node)
    d_gain, gain_adds = builder.gradient(gain[0]) if gain else (0, 0)
    d_x, adds = builder.gradient(x)
    builder.emit(
        "rms_norm_back", node, d_y=d_y, x=builder.value(x) if gain else builder.result(node),
        rstd=builder.saved(node, "rstd", (d_y.rows,)), gain=builder.value(gain[0]) if gain else 0, d_gain=d_gain,
        d_x=d_x, rows=d_y.rows, width=d_y.width, scaled=len(gain), gain_adds=gain_adds, adds=adds,
    )  # fmt: skip


register(Rule(
    name="rms_norm", pattern="rms_norm(x)", kernel="rms_norm", stages=("train", "fill", "decode"), forward=forward,
    backward=backward,
))  # fmt: skip
