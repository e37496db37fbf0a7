"""Kernels of `residual` alone, and of sums of whole arrays where two paths of the graph meet again."""

# pyright: reportMissingImports=false
from __future__ import annotations

from typing import Any

import numpy as np

from byhand.runtimes.loops.draft import Draft, Group
from byhand.runtimes.loops.native import compiled, vector


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


def forward(draft: Draft, group: Group) -> None:
    """Stream plus sublayer."""
    (node,) = group.nodes
    x, a = map(draft.value, node.inputs)
    y = draft.result(node)
    draft.emit("add_stream", node, y.size, x=x, a=a, y=y, n=y.size)


def backward(draft: Draft, group: Group) -> None:
    """The sublayer gets a copy: the stream's own is added to by others before the sublayer has read its cotangent."""
    (node,) = group.nodes
    stream, sublayer = node.inputs
    d_y = draft.cotangent(node)
    if draft.wants(sublayer):
        d_a = draft.fresh_gradient(sublayer)
        draft.emit("copy", node, 0, x=d_y, y=d_a, n=d_y.size)
        draft.join(sublayer, d_a, node)
    if draft.wants(stream):
        draft.join(stream, d_y, node)
