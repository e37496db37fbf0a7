"""Kernels of `relu`: after `linear` the bias and the cut in one pass, in place; alone, one pass each way."""

# pyright: reportMissingImports=false
from __future__ import annotations

import math

import numpy as np

from byhand.runtimes.loops.draft import Draft, Group
from byhand.runtimes.loops.kernels import linear
from byhand.runtimes.loops.kernels.gelu import match as match
from byhand.runtimes.loops.kernels.gelu import match_alone as match_alone
from byhand.runtimes.loops.native import compiled, matrix, vector

F = np.float32


@compiled
def bias_relu(memory, x, bias, rows, width):
    """x = max(x + bias, 0); NaN stays NaN."""
    a, b = matrix(memory, x, rows, width), vector(memory, bias, width)
    for i in range(rows):
        for c in range(width):
            v = a[i, c] + b[c]
            a[i, c] = F(0) if v <= F(0) else v


@compiled
def relu(memory, x, y, n):
    """y = max(x, 0); NaN stays NaN."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] = F(0) if a[i] <= F(0) else a[i]


@compiled
def relu_back(memory, d, y, n):
    """d = 0 where y is 0. Reading d only where it counts would keep the loop scalar."""
    a, b = vector(memory, d, n), vector(memory, y, n)
    for i in range(n):
        v = a[i]
        a[i] = v if b[i] > F(0) else F(0)


def forward(draft: Draft, group: Group) -> None:
    """Product, then bias and cut."""
    inner, last = group.nodes
    y = draft.result(last)
    linear.product(draft, group, y, 0)
    rows, width = math.prod(y.shape[:-1]), y.shape[-1]
    bias = draft.value(inner.inputs[2])
    draft.emit("bias_relu", last, 2 * rows * width, x=y, bias=bias, rows=rows, width=width)


def backward(draft: Draft, group: Group) -> None:
    """Cut, then the linear layer's own."""
    d = draft.cotangent(group.nodes[-1])
    n = math.prod(d.shape)
    draft.emit("relu_back", group.nodes[-1], n, d=d, y=draft.result(group.nodes[-1]), n=n)
    linear.bias_back(draft, group, d)
    linear.product_back(draft, group, d)


def forward_alone(draft: Draft, group: Group) -> None:
    """One pass, out of place."""
    (node,) = group.nodes
    y = draft.result(node)
    draft.emit("relu", node, y.size, x=draft.value(node.inputs[0]), y=y, n=y.size)


def backward_alone(draft: Draft, group: Group) -> None:
    """Cut where the result was cut."""
    (node,) = group.nodes
    d = draft.cotangent(node)
    draft.emit("relu_back", node, d.size, d=d, y=draft.result(node), n=d.size)
    draft.join(node.inputs[0], d, node)
