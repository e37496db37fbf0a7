"""Kernels of `layer_norm`, with and without gain and bias."""

import numpy as np

from byhand.runtimes.loops.kernels.products.rounding import copy_row
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder

F = np.float32


@kernel(rows="rows", moves={"x": "width", "xhat": "width", "rstd": 1})
def normalise(memory, x, xhat, rstd, eps, copy, format, rows, width):
    """xhat = (x - mean) * rstd, and a copy for products; each row stays in the L1 cache for all passes."""
    a, o, r = matrix(memory, x, rows, width), matrix(memory, xhat, rows, width), vector(memory, rstd, rows)
    inverse = F(1.0) / F(width)
    for i in range(rows):
        mean = F(0)
        for c in range(width):
            mean += a[i, c]
        mean *= inverse
        variance = F(0)
        for c in range(width):
            d = a[i, c] - mean
            variance += d * d
        r[i] = F(1.0) / np.sqrt(variance * inverse + memory[eps])
        for c in range(width):
            o[i, c] = (a[i, c] - mean) * r[i]
        copy_row(memory, xhat, copy, format, i, i, rows, width)


@kernel(rows="rows", moves={"xhat": "width", "y": "width"})
def scale_shift(memory, xhat, gain, bias, y, copy, format, rows, width):
    """y = gain * xhat + bias, and a copy for products."""
    a, o = matrix(memory, xhat, rows, width), matrix(memory, y, rows, width)
    g, b = vector(memory, gain, width), vector(memory, bias, width)
    for i in range(rows):
        for c in range(width):
            o[i, c] = g[c] * a[i, c] + b[c]
        copy_row(memory, y, copy, format, i, i, rows, width)


@kernel
def scale_shift_back(memory, d_y, xhat, gain, d_gain, d_bias, rows, width, adds):
    """d_gain and d_bias are sums over rows; d_y becomes h = gain * d_y in place."""
    d, a, g = matrix(memory, d_y, rows, width), matrix(memory, xhat, rows, width), vector(memory, gain, width)
    sum_gain, sum_bias = vector(memory, d_gain, width), vector(memory, d_bias, width)
    if not adds:
        sum_gain[:] = F(0)
        sum_bias[:] = F(0)
    for i in range(rows):
        for c in range(width):
            sum_gain[c] += d[i, c] * a[i, c]
        for c in range(width):
            sum_bias[c] += d[i, c]
        for c in range(width):
            d[i, c] *= g[c]


@kernel
def normalise_back(memory, h, xhat, rstd, d_x, rows, width, adds):
    """d_x = rstd * (h - avg(h) - xhat * avg(h * xhat)), added to the residual stream's cotangent if `adds`."""
    d, a, o = matrix(memory, h, rows, width), matrix(memory, xhat, rows, width), matrix(memory, d_x, rows, width)
    r = vector(memory, rstd, rows)
    inverse = F(1.0) / F(width)
    for i in range(rows):
        mean, mean_x = F(0), F(0)
        for c in range(width):
            mean += d[i, c]
            mean_x += d[i, c] * a[i, c]
        mean *= inverse
        mean_x *= inverse
        if adds:
            for c in range(width):
                o[i, c] += r[i] * (d[i, c] - mean - a[i, c] * mean_x)
        else:
            for c in range(width):
                o[i, c] = r[i] * (d[i, c] - mean - a[i, c] * mean_x)


def forward(builder: Builder, group: Group) -> None:
    """Normalise; scale and shift if there is a gain."""
    (node,) = group.nodes
    x, *affine = map(builder.value, node.inputs)
    y, rstd = builder.result(node), builder.saved(node, "rstd", (x.rows,))
    xhat = builder.saved(node, "xhat", x.shape) if affine else y
    builder.replicate(y, rstd, xhat)
    sizes = {"rows": x.rows, "width": x.width}
    builder.emit(
        "normalise", node, x=x, xhat=xhat, rstd=rstd, eps=builder.constant(node.static.get("eps", 1e-5)),
        copy=0 if affine else builder.copy(xhat), **sizes,
    )  # fmt: skip
    if affine:
        gain, bias = affine
        builder.emit("scale_shift", node, xhat=xhat, gain=gain, bias=bias, y=y, copy=builder.copy(y), **sizes)


def backward(builder: Builder, group: Group) -> None:
    """Gain and bias first, then the mean and the variance."""
    (node,) = group.nodes
    x, *affine = node.inputs
    d_y = builder.cotangent(node)
    sizes = {"rows": d_y.rows, "width": d_y.width}
    xhat = builder.saved(node, "xhat", x.shape) if affine else builder.result(node)
    if affine:
        d_gain, adds = builder.gradient(affine[0])
        d_bias, _ = builder.gradient(affine[1])
        builder.emit(
            "scale_shift_back", node, d_y=d_y, xhat=xhat, gain=builder.value(affine[0]), d_gain=d_gain,
            d_bias=d_bias, **sizes, adds=adds,
        )  # fmt: skip
    d_x, adds = builder.gradient(x)
    rstd = builder.saved(node, "rstd", (d_y.rows,))
    builder.emit("normalise_back", node, h=d_y, xhat=xhat, rstd=rstd, d_x=d_x, **sizes, adds=adds)


register(Rule(
    name="layer_norm", pattern="layer_norm(x)", kernel="normalise", stages=("train", "fill", "decode"),
    forward=forward, backward=backward,
))  # fmt: skip
