"""Kernels of activations and gates, made from scalar functions.

Each decorator makes the pass after the linear layers, the kernel of the equation alone, and its derivative, and
registers the rules that call them (`activation_rules.py`). `saves_derivative`: it costs an exponential, so bias,
value and derivative are one pass. `derivative_of_output`: a function of the output. `gates`: of two inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byhand.runtimes.loops.kernels.linear.activation_rules import BY_INPUT, BY_OUTPUT, GATE, Calls, register_rules
from byhand.runtimes.loops.kernels.products.rounding import copy_row
from byhand.runtimes.loops.kernels.threads import columns_of
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import matrix, vector

F = np.float32
VALUES: dict[str, Any] = {}  # each activation's value function, by equation; no gates
GATES: list[str] = []


def saves_derivative(computes: str, value: Any) -> Callable[[Any], Any]:
    """Decorate a function that returns an activation's value and derivative; `value` returns the value alone."""

    def decorate(value_and_derivative: Any) -> Any:
        formula = value_and_derivative.__name__

        @kernel(name=f"bias_{computes}", formula=formula, rows="rows", moves={"x": "width", "y": "width"})
        def bias_activation(memory, x, bias, y, copy, format, rows, width, kept):
            """y = f(x + bias), copied for products; x becomes the derivative. Unless `kept`, y is a single row."""
            a, o, b = matrix(memory, x, rows, width), matrix(memory, y, rows, width), vector(memory, bias, width)
            for i in range(rows):
                at = i if kept else 0
                for c in range(width):
                    o[at, c], a[i, c] = value_and_derivative(a[i, c] + b[c])
                copy_row(memory, y, copy, format, at, i, rows, width)

        @compiled
        def vjp(d, x):
            return d * value_and_derivative(x)[1]

        _alone(computes, value, vjp, BY_INPUT)
        return value_and_derivative

    return decorate


def derivative_of_output(computes: str, value: Any) -> Callable[[Any], Any]:
    """Decorate a function of d and the output that returns d times the derivative; `value` returns the output."""

    def decorate(vjp: Any) -> Any:
        @kernel(name=f"bias_{computes}", formula=vjp.__name__, rows="rows", moves={"x": "width"})
        def bias_activation(memory, x, bias, rows, width):
            """x = f(x + bias)."""
            a, b = matrix(memory, x, rows, width), vector(memory, bias, width)
            for i in range(rows):
                for c in range(width):
                    a[i, c] = value(a[i, c] + b[c])

        _alone(computes, value, vjp, BY_OUTPUT)
        return vjp

    return decorate


def _alone(computes: str, value: Any, vjp: Any, calls: Calls) -> None:
    """Make the kernels of an activation alone, and register the rules."""

    @kernel(name=computes)
    def activation(memory, x, y, n):
        """y = f(x)."""
        a, o = vector(memory, x, n), vector(memory, y, n)
        for i in range(n):
            o[i] = value(a[i])

    @kernel(name=f"{computes}_back")
    def back(memory, d, x, n):
        """d *= derivative at x, the input or the output. Masked loads of d would keep the loop scalar."""
        a, b = vector(memory, d, n), vector(memory, x, n)
        for i in range(n):
            a[i] = vjp(a[i], b[i])

    VALUES[computes] = value
    register_rules(computes, 1, calls)


def gates(computes: str, value: Any) -> Callable[[Any], Any]:
    """Decorate a function that returns a gate's value and derivatives at (g, u); `value` returns the value alone."""

    def decorate(value_and_derivatives: Any) -> Any:
        formula = value_and_derivatives.__name__

        @kernel(
            name=f"bias_{computes}",
            formula=formula,
            rows="rows",
            moves={"gate": "width", "up": "width", "y": "width"},
        )
        def bias_gate(memory, gate, up, bias, bias_up, y, copy, format, rows, width, biased, kept):
            """y = f(gate + bias, up + bias_up), and a copy for products; gate and up become the derivatives.

            Without `biased` there are no biases; unless `kept`, y is a single row.
            """
            a, u, o = (
                matrix(memory, gate, rows, width),
                matrix(memory, up, rows, width),
                matrix(memory, y, rows, width),
            )
            b, c_up = vector(memory, bias, width), vector(memory, bias_up, width)
            for i in range(rows):
                at = i if kept else 0
                if biased:
                    for c in range(width):
                        a[i, c] += b[c]
                    for c in range(width):
                        u[i, c] += c_up[c]
                for c in range(width):
                    o[at, c], a[i, c], u[i, c] = value_and_derivatives(a[i, c], u[i, c])
                copy_row(memory, y, copy, format, at, i, rows, width)

        @kernel(name=computes)
        def gate_columns(memory, gate, up, y, rows, width, part, parts):
            """y = f(gate, up), this thread's columns."""
            low, high = columns_of(part, parts, width)
            n = high - low
            for b in range(rows):
                first = b * width + low
                a, u, o = vector(memory, gate + first, n), vector(memory, up + first, n), vector(memory, y + first, n)
                for c in range(n):
                    o[c] = value(a[c], u[c])

        @kernel(name=f"{computes}_back")
        def back(memory, d, gate, up, d_gate, n):
            """d_gate = d times the derivative in gate; d *= the derivative in up."""
            a, o = vector(memory, d, n), vector(memory, d_gate, n)
            g, u = vector(memory, gate, n), vector(memory, up, n)
            for i in range(n):
                _, by_gate, by_up = value_and_derivatives(g[i], u[i])
                o[i], a[i] = a[i] * by_gate, a[i] * by_up

        GATES.append(computes)
        register_rules(computes, 2, GATE)
        return value_and_derivatives

    return decorate


@kernel
def activation_back(memory, d, derivative, out, copy, format, rows, width, adds):
    """d *= derivative, with a copy for products; out = sum over rows of d, the bias's gradient."""
    a, b, o = matrix(memory, d, rows, width), matrix(memory, derivative, rows, width), vector(memory, out, width)
    if not adds:
        o[:] = F(0)
    for i in range(rows):
        for c in range(width):
            a[i, c] *= b[i, c]
        for c in range(width):
            o[c] += a[i, c]
        copy_row(memory, d, copy, format, i, i, rows, width)


@kernel
def gate_back(memory, d, gate, up, out, out_up, copy, copy_up, format, rows, width, biased, adds, adds_up):
    """gate *= d, up *= d, with copies for products; if `biased`, out and out_up are their sums over rows."""
    a, u, b = matrix(memory, gate, rows, width), matrix(memory, up, rows, width), matrix(memory, d, rows, width)
    o, o_up = vector(memory, out, width), vector(memory, out_up, width)
    if biased and not adds:
        o[:] = F(0)
    if biased and not adds_up:
        o_up[:] = F(0)
    for i in range(rows):
        for c in range(width):
            v = b[i, c]
            a[i, c], u[i, c] = a[i, c] * v, u[i, c] * v
        if biased:
            for c in range(width):
                o[c] += a[i, c]
            for c in range(width):
                o_up[c] += u[i, c]
        copy_row(memory, gate, copy, format, i, i, rows, width)
        copy_row(memory, up, copy_up, format, i, i, rows, width)
