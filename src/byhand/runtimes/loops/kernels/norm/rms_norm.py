"""Kernels of `rms_norm`, with and without a gain."""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.kernels.vector.arithmetic import to_bfloat16
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.rules import Group, Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, matrix_of_bfloat16, matrix_of_bits, vector

F = np.float32


@kernel(rows="rows", moves={"x": "width", "xhat": "width", "rstd": 1})
def rms_normalise(memory, x, xhat, rstd, eps, copy, rows, width):
    """xhat = x * rstd, and a copy in bfloat16: passes over a row that stays in the first cache."""
    bits, low = matrix_of_bits(memory, xhat, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
    a, o, r = matrix(memory, x, rows, width), matrix(memory, xhat, rows, width), vector(memory, rstd, rows)
    inverse = F(1.0) / F(width)
    for i in range(rows):
        squares = F(0)
        for c in range(width):
            squares += a[i, c] * a[i, c]
        r[i] = F(1.0) / np.sqrt(squares * inverse + memory[eps])
        for c in range(width):
            o[i, c] = a[i, c] * r[i]
        if copy:
            for c in range(width):
                low[i, c] = to_bfloat16(bits[i, c])


@kernel(rows="rows", moves={"xhat": "width", "y": "width"})
def rms_scale(memory, xhat, gain, y, copy, rows, width):
    """y = gain * xhat, and a copy in bfloat16."""
    bits, low = matrix_of_bits(memory, y, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
    a, o, g = matrix(memory, xhat, rows, width), matrix(memory, y, rows, width), vector(memory, gain, width)
    for i in range(rows):
        for c in range(width):
            o[i, c] = g[c] * a[i, c]
        if copy:
            for c in range(width):
                low[i, c] = to_bfloat16(bits[i, c])


@kernel
def rms_scale_back(memory, d_y, xhat, gain, d_gain, rows, width, adds):
    """d_gain is a sum over rows; d_y becomes h = gain * d_y in its place."""
    d, a, g = matrix(memory, d_y, rows, width), matrix(memory, xhat, rows, width), vector(memory, gain, width)
    collected = vector(memory, d_gain, width)
    if not adds:
        collected[:] = F(0)
    for i in range(rows):
        for c in range(width):
            collected[c] += d[i, c] * a[i, c]
        for c in range(width):
            d[i, c] *= g[c]


@kernel
def rms_normalise_back(memory, h, xhat, rstd, d_x, rows, width, adds):
    """d_x = rstd * (h - xhat * avg(h * xhat)), added to what the residual stream brought."""
    d, a, o = matrix(memory, h, rows, width), matrix(memory, xhat, rows, width), matrix(memory, d_x, rows, width)
    r = vector(memory, rstd, rows)
    inverse = F(1.0) / F(width)
    for i in range(rows):
        mean_x = F(0)
        for c in range(width):
            mean_x += d[i, c] * a[i, c]
        mean_x *= inverse
        if adds:
            for c in range(width):
                o[i, c] += r[i] * (d[i, c] - a[i, c] * mean_x)
        else:
            for c in range(width):
                o[i, c] = r[i] * (d[i, c] - a[i, c] * mean_x)


def forward(builder: Builder, group: Group) -> None:
    """Divide by the root mean square; scale if there is a gain."""
    (node,) = group.nodes
    x, *gain = map(builder.value, node.inputs)
    y, sizes = builder.result(node), {"rows": x.rows, "width": x.width}
    xhat = builder.saved(node, "xhat", x.shape) if gain else y
    builder.emit(
        "rms_normalise", node, x=x, xhat=xhat, rstd=builder.saved(node, "rstd", (x.rows,)),
        eps=builder.constant(node.static.get("eps", 1e-5)), copy=0 if gain else builder.copy(xhat), **sizes,
    )  # fmt: skip
    if gain:
        builder.emit("rms_scale", node, xhat=xhat, gain=gain[0], y=y, copy=builder.copy(y), **sizes)


def backward(builder: Builder, group: Group) -> None:
    """The gain first, then the root mean square."""
    (node,) = group.nodes
    x, *gain = node.inputs
    d_y = builder.cotangent(node)
    sizes = {"rows": d_y.rows, "width": d_y.width}
    xhat = builder.saved(node, "xhat", x.shape) if gain else builder.result(node)
    if gain:
        d_gain, adds = builder.gradient(gain[0])
        builder.emit(
            "rms_scale_back", node, d_y=d_y, xhat=xhat, gain=builder.value(gain[0]), d_gain=d_gain, **sizes,
            adds=adds,
        )  # fmt: skip
    d_x, adds = builder.gradient(x)
    rstd = builder.saved(node, "rstd", (d_y.rows,))
    builder.emit("rms_normalise_back", node, h=d_y, xhat=xhat, rstd=rstd, d_x=d_x, **sizes, adds=adds)


def decode(builder: Builder, group: Group) -> None:
    """Every thread normalises the whole row for itself: that is faster than another barrier."""
    (node,) = group.nodes
    y = builder.result(node)
    own = [y, builder.saved(node, "rstd", (y.rows,))]
    for buffer in own if len(node.inputs) == 1 else [*own, builder.saved(node, "xhat", y.shape)]:
        buffer.kind = "own"
    forward(builder, group)


register(Rule(
    name="rms_norm", covers=("rms_norm",), kernel="rms_normalise", stages=("train", "fill"), forward=forward,
    backward=backward,
))  # fmt: skip
register(Rule(
    name="rms_norm", covers=("rms_norm",), kernel="rms_normalise", stages=("decode",), forward=decode,
))  # fmt: skip
