"""Kernels of `residual` alone, and of sums of whole arrays where two paths of the graph meet again."""

# pyright: reportMissingImports=false
from __future__ import annotations

from typing import Any

import numpy as np

from byhand.runtimes.loops.lowering.builder import Builder, Group
from byhand.runtimes.loops.machine.native import compiled, vector


@compiled
def add_stream(memory, x, a, y, n):
    """y = x + a."""
    left, right, o = vector(memory, x, n), vector(memory, a, n), vector(memory, y, n)
    for i in range(n):
        o[i] = left[i] + right[i]


@compiled
def copy(memory, x, y, n):
    """y = x."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] = a[i]


@compiled
def accumulate(memory, x, y, n):
    """y += x."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] += a[i]


@compiled
def zero(memory, y, n, unless):
    """y = 0; not where `unless` says that a micro-batch before has written there."""
    if not unless:
        vector(memory, y, n)[:] = np.float32(0)


def match(node: Any, graph: Any) -> tuple[Any, ...] | None:
    """residual alone."""
    return (node,)


def forward(builder: Builder, group: Group) -> None:
    """Stream plus sublayer."""
    (node,) = group.nodes
    x, a = map(builder.value, node.inputs)
    y = builder.result(node)
    builder.emit("add_stream", node, y.size, x=x, a=a, y=y, n=y.size)


def backward(builder: Builder, group: Group) -> None:
    """The sublayer gets a copy: the stream's own is added to by others before the sublayer has read its cotangent."""
    (node,) = group.nodes
    stream, sublayer = node.inputs
    d_y = builder.cotangent(node)
    if builder.wants(sublayer):
        d_a = builder.fresh_gradient(sublayer)
        builder.emit("copy", node, 0, x=d_y, y=d_a, n=d_y.size)
        builder.join(sublayer, d_a, node)
    if builder.wants(stream):
        builder.join(stream, d_y, node)
