"""Kernels of `relu`: after `linear` the bias and the cut in one pass, in place; alone, one pass each way."""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.kernels.products import linear
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.rules import Group, Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, vector

F = np.float32


@kernel(rows="rows", moves={"x": "width"})
def bias_relu(memory, x, bias, rows, width):
    """x = max(x + bias, 0); NaN stays NaN."""
    a, b = matrix(memory, x, rows, width), vector(memory, bias, width)
    for i in range(rows):
        for c in range(width):
            v = a[i, c] + b[c]
            a[i, c] = F(0) if v <= F(0) else v


@kernel
def relu(memory, x, y, n):
    """y = max(x, 0); NaN stays NaN."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] = F(0) if a[i] <= F(0) else a[i]


@kernel
def relu_back(memory, d, y, n):
    """d = 0 where y is 0. Reading d only where it counts would keep the loop scalar."""
    a, b = vector(memory, d, n), vector(memory, y, n)
    for i in range(n):
        v = a[i]
        a[i] = v if b[i] > F(0) else F(0)


def forward(builder: Builder, group: Group) -> None:
    """Product, then bias and cut."""
    inner, last = group.nodes
    y = builder.result(last)
    linear.product(builder, group, y, 0)
    builder.emit("bias_relu", last, x=y, bias=builder.value(inner.inputs[2]), rows=y.rows, width=y.width)


def backward(builder: Builder, group: Group) -> None:
    """Cut, then the linear layer's own."""
    last = group.nodes[-1]
    d = builder.cotangent(last)
    builder.emit("relu_back", last, d=d, y=builder.result(last), n=d.size)
    linear.bias_back(builder, group, d)
    linear.product_back(builder, group, d)


def forward_alone(builder: Builder, group: Group) -> None:
    """One pass, out of place."""
    (node,) = group.nodes
    y = builder.result(node)
    builder.emit("relu", node, x=builder.value(node.inputs[0]), y=y, n=y.size)


def backward_alone(builder: Builder, group: Group) -> None:
    """Cut where the result was cut."""
    (node,) = group.nodes
    d = builder.cotangent(node)
    builder.emit("relu_back", node, d=d, y=builder.result(node), n=d.size)
    builder.join(node.inputs[0], d, node)


register(Rule(
    name="linear + relu", covers=("linear", "relu"), kernel="bias_relu", stages=("train", "fill"),
    match=linear.match_biased, forward=forward, backward=backward, reason="bias and cut in one pass, in place",
))  # fmt: skip
register(Rule(
    name="relu", covers=("relu",), kernel="relu", stages=("train", "fill"), forward=forward_alone,
    backward=backward_alone,
))  # fmt: skip
