"""Kernels of the activations `relu` and `relu_squared`: after `linear`, where they add its bias in place, or alone.

Backward reads the result alone: it tells where relu was cut, and the slope of its square, 2 max(x, 0), is 2 sqrt(y).
"""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.kernels.pointwise.activation import forward_alone
from byhand.runtimes.loops.kernels.products import linear
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.ir import Buffer
from byhand.runtimes.loops.lowering.rules import Group, Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import matrix, vector

F = np.float32


@compiled
def relu_of(v):
    """Return max(v, 0); NaN stays NaN."""
    return F(0) if v <= F(0) else v


@compiled
def relu_squared_of(v):
    """Return max(v, 0)^2; NaN stays NaN."""
    return F(0) if v <= F(0) else v * v


@kernel(rows="rows", moves={"x": "width"})
def bias_relu(memory, x, bias, rows, width):
    """x = relu(x + bias)."""
    a, b = matrix(memory, x, rows, width), vector(memory, bias, width)
    for i in range(rows):
        for c in range(width):
            a[i, c] = relu_of(a[i, c] + b[c])


@kernel(rows="rows", moves={"x": "width"})
def bias_relu_squared(memory, x, bias, rows, width):
    """x = relu(x + bias)^2."""
    a, b = matrix(memory, x, rows, width), vector(memory, bias, width)
    for i in range(rows):
        for c in range(width):
            a[i, c] = relu_squared_of(a[i, c] + b[c])


@kernel
def relu(memory, x, y, n):
    """y = relu(x)."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] = relu_of(a[i])


@kernel
def relu_squared(memory, x, y, n):
    """y = relu(x)^2."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] = relu_squared_of(a[i])


@kernel
def relu_back(memory, d, y, n):
    """d = 0 where y is 0. Reading d only where it counts would keep the loop scalar."""
    a, b = vector(memory, d, n), vector(memory, y, n)
    for i in range(n):
        v = a[i]
        a[i] = v if b[i] > F(0) else F(0)


@kernel
def relu_squared_back(memory, d, y, n):
    """d *= 2 sqrt(y)."""
    a, b = vector(memory, d, n), vector(memory, y, n)
    for i in range(n):
        a[i] *= F(2.0) * np.sqrt(b[i])


def forward(builder: Builder, group: Group) -> None:
    """Product, then bias and cut."""
    last = group.nodes[-1]
    y, bias = builder.result(last), linear.bias_of(builder, linear.linear_node(group))
    linear.product(builder, group, y, 0)
    builder.emit(group.rule.kernel, last, x=y, bias=bias, rows=y.rows, width=y.width)


def backward(builder: Builder, group: Group) -> None:
    """The slope, then the linear layer's own."""
    d = _through_slope(builder, group)
    linear.bias_back(builder, group, d)
    linear.product_back(builder, group, d)


def backward_alone(builder: Builder, group: Group) -> None:
    """The slope."""
    (node,) = group.nodes
    builder.join(node.inputs[0], _through_slope(builder, group), node)


def _through_slope(builder: Builder, group: Group) -> Buffer:
    """Return the cotangent times the slope, in its place."""
    last = group.nodes[-1]
    d = builder.cotangent(last)
    builder.emit(f"{last.equation.name}_back", last, d=d, y=builder.result(last), n=d.size)
    return d


register(Rule(
    name="linear + relu", covers=(("transpose", ""), "linear", "relu"), kernel="bias_relu", stages=("train", "fill"),
    match=linear.match_before, forward=forward, backward=backward, reason="bias and cut in one pass, in place",
))  # fmt: skip
register(Rule(
    name="relu", covers=("relu",), kernel="relu", stages=("train", "fill"), forward=forward_alone,
    backward=backward_alone,
))  # fmt: skip
register(Rule(
    name="linear + relu_squared", covers=(("transpose", ""), "linear", "relu_squared"), kernel="bias_relu_squared",
    stages=("train", "fill"), match=linear.match_before, forward=forward, backward=backward,
    reason="bias, cut and square in one pass, in place",
))  # fmt: skip
register(Rule(
    name="relu_squared", covers=("relu_squared",), kernel="relu_squared", stages=("train", "fill"),
    forward=forward_alone, backward=backward_alone,
))  # fmt: skip
