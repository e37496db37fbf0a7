"""Activations and gates as scalar functions: values, and derivatives or the vjp from the output.

An activation needs only these: `activation_passes.py` makes its kernels from them, and decoding applies the value
(`row_product.py`).
"""

import math

import numpy as np

from byhand.runtimes.loops.kernels.linear.activation_passes import GATES as GATES
from byhand.runtimes.loops.kernels.linear.activation_passes import VALUES as VALUES
from byhand.runtimes.loops.kernels.linear.activation_passes import derivative_of_output, gates, saves_derivative
from byhand.runtimes.loops.kernels.vector.arithmetic import exp
from byhand.runtimes.loops.machine.native import compiled

F = np.float32
TWO_K = F(2 * math.sqrt(2 / math.pi))
CUBIC = F(0.044715)
DENSITY = F(1 / math.sqrt(2 * math.pi))


@compiled
def gelu_of(v):
    """Return gelu(v) = v s,   s = (1 + tanh u) / 2 = 1 / (1 + exp(-2u))."""
    return v / (F(1.0) + exp(-TWO_K * v * (F(1.0) + CUBIC * v * v)))


@saves_derivative(computes="gelu", value=gelu_of)
@compiled
def gelu_and_derivative(v):
    """Return gelu(v) and its derivative, s + v s (1 - s) 2 u'(v)."""
    square = CUBIC * v * v
    s = F(1.0) / (F(1.0) + exp(-TWO_K * v * (F(1.0) + square)))
    g = v * s
    return g, s + (g - g * s) * TWO_K * (F(1.0) + F(3.0) * square)


@compiled
def relu_of(v):
    """Return max(v, 0); NaN stays NaN."""
    return F(0) if v <= F(0) else v


@derivative_of_output(computes="relu", value=relu_of)
@compiled
def relu_vjp(d, y):
    """Return d where the result y is positive, else 0."""
    return d if y > F(0) else F(0)


@compiled
def relu_squared_of(v):
    """Return max(v, 0)^2; NaN stays NaN."""
    return F(0) if v <= F(0) else v * v


@derivative_of_output(computes="relu_squared", value=relu_squared_of)
@compiled
def relu_squared_vjp(d, y):
    """Return d times the derivative, 2 max(v, 0) = 2 sqrt(y)."""
    return d * (F(2.0) * np.sqrt(y))


@compiled
def silu_of(v):
    """Return silu(v) = v s,   s = 1 / (1 + exp(-v))."""
    return v / (F(1.0) + exp(-v))


@saves_derivative(computes="silu", value=silu_of)
@compiled
def silu_and_derivative(v):
    """Return silu(v) and its derivative, s + v s (1 - s)."""
    s = F(1.0) / (F(1.0) + exp(-v))
    g = v * s
    return g, s + (g - g * s)


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
    """Return gelu_exact(v) = v P,   P = (1 + erf(v / sqrt(2))) / 2."""
    return v * probability_and_bell(v)[0]


@saves_derivative(computes="gelu_exact", value=gelu_exact_of)
@compiled
def gelu_exact_and_derivative(v):
    """Return gelu_exact(v) and its derivative, P + v exp(-v^2 / 2) / sqrt(2 pi); both take one exponential."""
    p, bell = probability_and_bell(v)
    return v * p, p + v * bell * DENSITY


@compiled
def swiglu_of(g, u):
    """Return silu(g) u."""
    return silu_of(g) * u


@gates(computes="swiglu", value=swiglu_of)
@compiled
def swiglu_and_derivatives(g, u):
    """Return silu(g) u and its derivatives, u silu'(g) at g and silu(g) at u."""
    opened, derivative = silu_and_derivative(g)
    return opened * u, derivative * u, opened


@compiled
def geglu_of(g, u):
    """Return gelu(g) u."""
    return gelu_of(g) * u


@gates(computes="geglu", value=geglu_of)
@compiled
def geglu_and_derivatives(g, u):
    """Return gelu(g) u and its derivatives, u gelu'(g) at g and gelu(g) at u."""
    opened, derivative = gelu_and_derivative(g)
    return opened * u, derivative * u, opened
