"""Kernels of the activation `gelu_exact`: after `linear` with its bias, or alone, in the passes of `gelu`.

Equation    gelu_exact = v P,   P = (1 + erf(v / sqrt(2))) / 2,   slope = P + v exp(-v^2 / 2) / sqrt(2 pi)
One exponential serves the probability and the density.
"""

# pyright: reportMissingImports=false
import math

import numpy as np

from byhand.runtimes.loops.kernels.pointwise.activation import (
    backward_alone,
    backward_gelu,
    forward_alone,
    forward_gelu,
)
from byhand.runtimes.loops.kernels.products import linear
from byhand.runtimes.loops.kernels.vector.arithmetic import exp, to_bfloat16
from byhand.runtimes.loops.lowering.rules import Rule, register
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import matrix, matrix_of_bfloat16, matrix_of_bits, vector

F = np.float32
DENSITY = F(1 / math.sqrt(2 * math.pi))


@compiled
def probability_and_bell(v):
    """Return the probability P that a standard normal number is below v, and exp(-v^2 / 2).

    Equation    P(-|v|) = exp(-v^2 / 2) t p(t),   t = 1 / (1 + |v| / 4),   P(|v|) = 1 - P(-|v|)
    Units       error below 2e-7; p is minimax for |v| up to 14, its errors weighted by the root of P(-|v|) (Remez)
    """
    size = abs(v)
    bell, t = exp(F(-0.5) * v * v), F(1.0) / (F(1.0) + F(0.25) * size)
    p = F(-0.09257083604365567)
    p = p * t + F(0.3456172615322644)
    p = p * t - F(0.2735189274932025)
    p = p * t + F(0.2863498648774923)
    p = p * t + F(0.02284861865698698)
    p = p * t + F(0.11243508920366731)
    p = p * t + F(0.09883892284124106)
    tail = bell * t * p
    return F(1.0) - tail if v > F(0) else tail, bell


@compiled
def gelu_exact_of(v):
    """Return gelu_exact(v)."""
    return v * probability_and_bell(v)[0]


@compiled
def gelu_exact_and_slope(v):
    """Return gelu_exact(v) and its derivative."""
    p, bell = probability_and_bell(v)
    return v * p, p + v * bell * DENSITY


@kernel(rows="rows", moves={"x": "width", "y": "width"})
def bias_gelu_exact(memory, x, bias, y, copy, rows, width, kept):
    """y = gelu_exact(x + bias), copied in bfloat16; x becomes the slope there. Unless `kept`, y has but one row."""
    a, o, b = matrix(memory, x, rows, width), matrix(memory, y, rows, width), vector(memory, bias, width)
    bits, low = matrix_of_bits(memory, y, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
    for i in range(rows):
        at = i if kept else 0
        for c in range(width):
            o[at, c], a[i, c] = gelu_exact_and_slope(a[i, c] + b[c])
        if copy:
            for c in range(width):
                low[i, c] = to_bfloat16(bits[at, c])


@kernel
def gelu_exact(memory, x, y, n):
    """y = gelu_exact(x)."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] = gelu_exact_of(a[i])


@kernel
def times_gelu_exact_slope(memory, d, x, n):
    """d *= slope at x."""
    a, b = vector(memory, d, n), vector(memory, x, n)
    for i in range(n):
        a[i] *= gelu_exact_and_slope(b[i])[1]


register(Rule(
    name="linear + gelu_exact", covers=(("transpose", ""), "linear", "gelu_exact"), kernel="bias_gelu_exact",
    stages=("train", "fill"), match=linear.match_before, forward=forward_gelu, backward=backward_gelu,
    reason="bias, gate and derivative in one pass over the widest array; going back is one product, not another exp",
))  # fmt: skip
register(Rule(
    name="gelu_exact", covers=("gelu_exact",), kernel="gelu_exact", stages=("train", "fill"), forward=forward_alone,
    backward=backward_alone,
))  # fmt: skip
