"""Kernels of `gelu` (tanh form) after `linear`: bias, gate and derivative in one pass.

Equation    y = x s,   s = (1 + tanh u) / 2 = 1 / (1 + exp(-2u)),   slope = s + x s (1 - s) 2 u'(x)
The slope takes the place of x, which nobody needs again: going back is one product instead of another exp.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import math
from typing import Any

import numpy as np

from byhand.runtimes.loops.draft import Draft, Group
from byhand.runtimes.loops.kernels import linear
from byhand.runtimes.loops.kernels.exponential import exp
from byhand.runtimes.loops.native import compiled, matrix, vector

F = np.float32
TWO_K = F(2 * math.sqrt(2 / math.pi))
CUBIC = F(0.044715)


@compiled
def bias_gelu(memory, x, bias, y, rows, width):
    """y = gelu(x + bias); x becomes the slope there."""
    a, o, b = matrix(memory, x, rows, width), matrix(memory, y, rows, width), vector(memory, bias, width)
    for i in range(rows):
        for c in range(width):
            v = a[i, c] + b[c]
            square = CUBIC * v * v
            s = F(1.0) / (F(1.0) + exp(-TWO_K * v * (F(1.0) + square)))
            g = v * s
            o[i, c] = g
            a[i, c] = s + (g - g * s) * TWO_K * (F(1.0) + F(3.0) * square)


@compiled
def times_slope(memory, d, slope, n):
    """d *= slope."""
    a, b = vector(memory, d, n), vector(memory, slope, n)
    for i in range(n):
        a[i] *= b[i]


def match(node: Any, graph: Any) -> tuple[Any, ...] | None:
    """linear with a bias -> gelu."""
    inner = graph.only(node.inputs[0], "linear")
    return (inner, node) if inner and len(inner.inputs) > 2 and inner.inputs[1].node is None else None


def forward(draft: Draft, group: Group) -> None:
    """Product, then everything element-wise in one pass."""
    inner, last = group.nodes
    shape = last.results[0][0]
    x, y = draft.saved(inner, "pre", shape), draft.result(last)
    linear.product(draft, group, x, 0)
    rows, width = math.prod(shape[:-1]), shape[-1]
    bias = draft.value(inner.inputs[2])
    draft.emit("bias_gelu", last, 30 * rows * width, x=x, bias=bias, y=y, rows=rows, width=width)


def backward(draft: Draft, group: Group) -> None:
    """One product with the slope, then the linear layer's own."""
    inner, last = group.nodes
    d = draft.cotangent(last)
    n = math.prod(d.shape)
    draft.emit("times_slope", last, n, d=d, slope=draft.saved(inner, "pre", d.shape), n=n)
    linear.bias_back(draft, group, d)
    linear.product_back(draft, group, d)
