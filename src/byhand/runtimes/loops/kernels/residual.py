"""Kernels of `residual` alone, and of sums of whole arrays where paths of the graph join."""

import numpy as np

from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder


@kernel
def add_stream(memory, x, a, y, n):
    """y = x + a."""
    left, right, o = vector(memory, x, n), vector(memory, a, n), vector(memory, y, n)
    for i in range(n):
        o[i] = left[i] + right[i]


@kernel(rows="n", moves={"x": 1, "y": 1})
def copy(memory, x, y, n):
    """y = x."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] = a[i]


@kernel
def accumulate(memory, x, y, n):
    """y += x."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] += a[i]


@kernel
def zero(memory, y, n, unless):
    """y = 0, unless an earlier micro-batch has written it (`unless`)."""
    if not unless:
        vector(memory, y, n)[:] = np.float32(0)


def forward(builder: Builder, group: Group) -> None:
    """Stream plus sublayer."""
    (node,) = group.nodes
    x, a = map(builder.value, node.inputs)
    y = builder.result(node)
    builder.replicate(y)
    builder.emit("add_stream", node, x=x, a=a, y=y, n=y.size)


def backward(builder: Builder, group: Group) -> None:
    """The sublayer gets a copy, since others accumulate into the stream's cotangent before the sublayer reads it."""
    (node,) = group.nodes
    stream, sublayer = node.inputs
    d_y = builder.cotangent(node)
    if sublayer.requires_grad:
        d_a = builder.fresh_gradient(sublayer)
        builder.emit("copy", node, 0, x=d_y, y=d_a, n=d_y.size)
        builder.join(sublayer, d_a, node)
    if stream.requires_grad:
        builder.join(stream, d_y, node)


register(Rule(
    name="residual", pattern="residual(stream, x)", kernel="add_stream", stages=("train", "fill", "decode"),
    forward=forward, backward=backward,
))  # fmt: skip
