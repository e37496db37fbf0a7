"""Kernels of the activation `gelu` (tanh form): after `linear` with its bias, or alone.

Equation    gelu = x s,   s = (1 + tanh u) / 2 = 1 / (1 + exp(-2u)),   slope = s + x s (1 - s) 2 u'(x)
After `linear` bias, gate and slope are one pass, and the slope overwrites x, which has no other reader: backward is
one product instead of another exp.
"""

# pyright: reportMissingImports=false
import math

import numpy as np

from byhand.runtimes.loops.kernels.products import linear
from byhand.runtimes.loops.kernels.vector.arithmetic import exp, to_bfloat16
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.rules import Group, Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import matrix, matrix_of_bfloat16, matrix_of_bits, vector

F = np.float32
TWO_K = F(2 * math.sqrt(2 / math.pi))
CUBIC = F(0.044715)


@compiled
def gelu_of(v):
    """Return gelu(v)."""
    return v / (F(1.0) + exp(-TWO_K * v * (F(1.0) + CUBIC * v * v)))


@compiled
def gelu_and_slope(v):
    """Return gelu(v) and its derivative."""
    square = CUBIC * v * v
    s = F(1.0) / (F(1.0) + exp(-TWO_K * v * (F(1.0) + square)))
    g = v * s
    return g, s + (g - g * s) * TWO_K * (F(1.0) + F(3.0) * square)


@kernel(rows="rows", moves={"x": "width", "y": "width"})
def bias_gelu(memory, x, bias, y, copy, rows, width, kept):
    """y = gelu(x + bias), and a copy in bfloat16; x becomes the slope there. Unless `kept`, y has but one row."""
    a, o, b = matrix(memory, x, rows, width), matrix(memory, y, rows, width), vector(memory, bias, width)
    bits, low = matrix_of_bits(memory, y, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
    for i in range(rows):
        at = i if kept else 0
        for c in range(width):
            o[at, c], a[i, c] = gelu_and_slope(a[i, c] + b[c])
        if copy:
            for c in range(width):
                low[i, c] = to_bfloat16(bits[at, c])


@kernel
def gelu_back(memory, d, slope, out, copy, rows, width, adds):
    """d *= slope; out = sum over rows of d, the bias's gradient; a copy of d in bfloat16."""
    a, b, o = matrix(memory, d, rows, width), matrix(memory, slope, rows, width), vector(memory, out, width)
    bits, low = matrix_of_bits(memory, d, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
    if not adds:
        o[:] = F(0)
    for i in range(rows):
        for c in range(width):
            a[i, c] *= b[i, c]
        for c in range(width):
            o[c] += a[i, c]
        if copy:
            for c in range(width):
                low[i, c] = to_bfloat16(bits[i, c])


@kernel
def gelu(memory, x, y, n):
    """y = gelu(x)."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] = gelu_of(a[i])


@kernel
def times_gelu_slope(memory, d, x, n):
    """d *= slope at x."""
    a, b = vector(memory, d, n), vector(memory, x, n)
    for i in range(n):
        a[i] *= gelu_and_slope(b[i])[1]


def forward_gelu(builder: Builder, group: Group) -> None:
    """Product, then everything element-wise in one pass."""
    inner, last = linear.linear_node(group), group.nodes[-1]
    y = builder.result(last)
    x = builder.saved(inner, "pre", y.shape)
    linear.product(builder, group, x, 0)
    copy = builder.copy(y)
    reader = builder.graph.only_reader(last)
    kept = not copy or reader is None or reader.equation.name != "linear"
    builder.emit(
        group.rule.kernel, last, x=x, bias=linear.bias_of(builder, inner),
        y=y if kept else builder.scratch(last, "row", (y.width,)), copy=copy, rows=y.rows, width=y.width,
        kept=int(kept),
    )  # fmt: skip


def backward_gelu(builder: Builder, group: Group) -> None:
    """One product with the slope and the bias's gradient in a pass, then the products."""
    inner, last = linear.linear_node(group), group.nodes[-1]
    d = builder.cotangent(last)
    biased = len(inner.inputs) > 2
    out, adds = builder.gradient(inner.inputs[2]) if biased else (builder.scratch(inner, "sums", (d.width,)), 0)
    builder.emit(
        "gelu_back", last, d=d, slope=builder.saved(inner, "pre", d.shape), out=out,
        copy=builder.copy(d, id(inner)), rows=d.rows, width=d.width, adds=adds,
    )  # fmt: skip
    linear.product_back(builder, group, d)


def forward_alone(builder: Builder, group: Group) -> None:
    """One pass, out of place."""
    (node,) = group.nodes
    y = builder.result(node)
    builder.emit(group.rule.kernel, node, x=builder.value(node.inputs[0]), y=y, n=y.size)


def backward_alone(builder: Builder, group: Group) -> None:
    """The slope is computed anew."""
    (node,) = group.nodes
    x, d = node.inputs[0], builder.cotangent(node)
    builder.emit(f"times_{node.equation.name}_slope", node, d=d, x=builder.value(x), n=d.size)
    builder.join(x, d, node)


register(Rule(
    name="linear + gelu", covers=(("transpose", ""), "linear", "gelu"), kernel="bias_gelu", stages=("train", "fill"),
    match=linear.match_before, forward=forward_gelu, backward=backward_gelu,
    reason="bias, gate and derivative in one pass over the widest array; going back is one product, not another exp",
))  # fmt: skip
register(Rule(
    name="gelu", covers=("gelu",), kernel="gelu", stages=("train", "fill"), forward=forward_alone,
    backward=backward_alone,
))  # fmt: skip
