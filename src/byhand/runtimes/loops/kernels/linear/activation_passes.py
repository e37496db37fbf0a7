"""Kernels and rules of an activation, made of its functions of one number: after `linear` with its bias, or alone.

`keeps_slope` is for a slope that costs an exponential. Bias, value and slope are one pass, and the slope overwrites
x, which has no other reader: the backward pass is one product instead of another exp. `keeps_result` is for a slope
that the result tells: the result takes the place of x.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byhand.runtimes.loops.kernels.linear import linear
from byhand.runtimes.loops.kernels.vector.arithmetic import to_bfloat16
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, matrix_of_bfloat16, matrix_of_bits, vector
from byhand.runtimes.loops.pattern.rules import Emit, Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer

F = np.float32
registered: dict[str, Any] = {}  # the value's function of each activation, by equation


def keeps_slope(computes: str, value: Any) -> Callable[[Any], Any]:
    """Decorate a function that returns value and slope at a number; `value` returns the value alone."""

    def decorate(value_and_slope: Any) -> Any:
        formula = value_and_slope.__name__

        @kernel(name=f"bias_{computes}", formula=formula, rows="rows", moves={"x": "width", "y": "width"})
        def bias_activation(memory, x, bias, y, copy, rows, width, kept):
            """y = f(x + bias), copied in bfloat16; x becomes the slope there. Unless `kept`, y has but one row."""
            a, o, b = matrix(memory, x, rows, width), matrix(memory, y, rows, width), vector(memory, bias, width)
            bits, low = matrix_of_bits(memory, y, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
            for i in range(rows):
                at = i if kept else 0
                for c in range(width):
                    o[at, c], a[i, c] = value_and_slope(a[i, c] + b[c])
                if copy:
                    for c in range(width):
                        low[i, c] = to_bfloat16(bits[at, c])

        @kernel(name=f"times_{computes}_slope")
        def times_slope(memory, d, x, n):
            """d *= slope at x."""
            a, b = vector(memory, d, n), vector(memory, x, n)
            for i in range(n):
                a[i] *= value_and_slope(b[i])[1]

        reason = "bias, value and slope in one pass over the widest array; going back is one product, not another exp"
        _register(computes, value, reason, forward_with_slope, backward_with_slope, backward_by_input)
        return value_and_slope

    return decorate


def keeps_result(computes: str, value: Any) -> Callable[[Any], Any]:
    """Decorate a function of d and the result that returns d times the slope; `value` returns the result."""

    def decorate(times_slope: Any) -> Any:
        @kernel(name=f"bias_{computes}", formula=times_slope.__name__, rows="rows", moves={"x": "width"})
        def bias_activation(memory, x, bias, rows, width):
            """x = f(x + bias)."""
            a, b = matrix(memory, x, rows, width), vector(memory, bias, width)
            for i in range(rows):
                for c in range(width):
                    a[i, c] = value(a[i, c] + b[c])

        @kernel(name=f"{computes}_back")
        def back(memory, d, y, n):
            """d *= slope, as the result y tells. Reading d only where it counts would keep the loop scalar."""
            a, b = vector(memory, d, n), vector(memory, y, n)
            for i in range(n):
                a[i] = times_slope(a[i], b[i])

        reason = "bias and value in one pass, in place"
        _register(computes, value, reason, forward_in_place, backward_in_place, backward_by_result)
        return times_slope

    return decorate


def _register(computes: str, value: Any, reason: str, forward: Emit, backward: Emit, backward_alone: Emit) -> None:
    """Register the kernel of the activation alone, and the rules after `linear` and alone."""

    @kernel(name=computes)
    def activation(memory, x, y, n):
        """y = f(x)."""
        a, o = vector(memory, x, n), vector(memory, y, n)
        for i in range(n):
            o[i] = value(a[i])

    registered[computes] = value
    register(Rule(
        name=f"linear + {computes}", covers=(("transpose", ""), "linear", computes), kernel=f"bias_{computes}",
        stages=("train", "fill"), match=linear.match_before, forward=forward, backward=backward, reason=reason,
    ))  # fmt: skip
    register(Rule(
        name=computes, covers=(computes,), kernel=computes, stages=("train", "fill"), forward=forward_alone,
        backward=backward_alone,
    ))  # fmt: skip


def forward_alone(builder: Builder, group: Group) -> None:
    """One pass, out of place."""
    (node,) = group.nodes
    y = builder.result(node)
    builder.emit(group.rule.kernel, node, x=builder.value(node.inputs[0]), y=y, n=y.size)


def backward_by_input(builder: Builder, group: Group) -> None:
    """The slope, which is computed anew."""
    (node,) = group.nodes
    x, d = node.inputs[0], builder.cotangent(node)
    builder.emit(f"times_{node.equation.name}_slope", node, d=d, x=builder.value(x), n=d.size)
    builder.join(x, d, node)


def backward_by_result(builder: Builder, group: Group) -> None:
    """The slope, which the result tells."""
    (node,) = group.nodes
    builder.join(node.inputs[0], _through_slope(builder, node), node)


def forward_in_place(builder: Builder, group: Group) -> None:
    """Product, then bias and value."""
    last = group.nodes[-1]
    y, bias = builder.result(last), linear.bias_or_zeros(builder, linear.linear_node(group))
    linear.product(builder, group, y, 0)
    builder.emit(group.rule.kernel, last, x=y, bias=bias, rows=y.rows, width=y.width)


def backward_in_place(builder: Builder, group: Group) -> None:
    """The slope, then the linear layer's own."""
    d = _through_slope(builder, group.nodes[-1])
    linear.bias_back(builder, group, d)
    linear.product_back(builder, group, d)


def _through_slope(builder: Builder, node: Any) -> Buffer:
    """Return the cotangent times the slope, in its place."""
    d = builder.cotangent(node)
    builder.emit(f"{node.equation.name}_back", node, d=d, y=builder.result(node), n=d.size)
    return d


def forward_with_slope(builder: Builder, group: Group) -> None:
    """Product, then everything element-wise in one pass."""
    inner, last = linear.linear_node(group), group.nodes[-1]
    x = builder.saved(inner, "pre", last.results[0][0])
    linear.product(builder, group, x, 0)
    bias = linear.bias_or_zeros(builder, inner)
    builder.emit(group.rule.kernel, last, x=x, bias=bias, **linear.read_by_products(builder, last))


def backward_with_slope(builder: Builder, group: Group) -> None:
    """One product with the slope and the bias's gradient in a pass, then the products."""
    inner, last = linear.linear_node(group), group.nodes[-1]
    d = builder.cotangent(last)
    biased = len(inner.inputs) > 2
    out, adds = builder.gradient(inner.inputs[2]) if biased else (builder.scratch(inner, "sums", (d.width,)), 0)
    builder.emit(
        "slope_back", last, d=d, slope=builder.saved(inner, "pre", d.shape), out=out,
        copy=builder.copy(d, id(inner)), rows=d.rows, width=d.width, adds=adds,
    )  # fmt: skip
    linear.product_back(builder, group, d)


@kernel
def slope_back(memory, d, slope, out, copy, rows, width, adds):
    """d *= slope; out = sum over rows of d, the bias's gradient; a copy of d in bfloat16."""
    a, b, o = matrix(memory, d, rows, width), matrix(memory, slope, rows, width), vector(memory, out, width)
    bits, low = matrix_of_bits(memory, d, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
    if not adds:
        o[:] = F(0)
    for i in range(rows):
        for c in range(width):
            a[i, c] *= b[i, c]
        for c in range(width):
            o[c] += a[i, c]
        if copy:
            for c in range(width):
                low[i, c] = to_bfloat16(bits[i, c])
