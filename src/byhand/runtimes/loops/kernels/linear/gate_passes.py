"""Kernels and rules of a gate, made of its functions of two numbers: after its two linear layers, or alone.

After the layers one pass adds the biases and leaves both slopes where g and u were, which have no other reader.
Backward multiplies them by d there: they become the layers' cotangents, without another exp or another array.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byhand.runtimes.loops.kernels.linear import linear, row_product
from byhand.runtimes.loops.kernels.linear.row_product import columns_of
from byhand.runtimes.loops.kernels.vector.arithmetic import to_bfloat16
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, matrix_of_bfloat16, matrix_of_bits, vector
from byhand.runtimes.loops.pattern.rules import Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import PART, PARTS, Buffer

F = np.float32


def gates(computes: str, value: Any) -> Callable[[Any], Any]:
    """Decorate a function that returns value and slopes at two numbers (g, u); `value` returns the value alone."""

    def decorate(value_and_slopes: Any) -> Any:
        formula = value_and_slopes.__name__

        @kernel(
            name=f"bias_{computes}",
            formula=formula,
            rows="rows",
            moves={"gate": "width", "up": "width", "y": "width"},
        )
        def bias_gate(memory, gate, up, bias, bias_up, y, copy, rows, width, biased, kept):
            """y = f(gate + bias, up + bias_up), and a copy in bfloat16; gate and up become the slopes there.

            Without `biased` there are no biases; unless `kept`, y has but one row.
            """
            a, u, o = (
                matrix(memory, gate, rows, width),
                matrix(memory, up, rows, width),
                matrix(memory, y, rows, width),
            )
            b, c_up = vector(memory, bias, width), vector(memory, bias_up, width)
            bits, low = matrix_of_bits(memory, y, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
            for i in range(rows):
                at = i if kept else 0
                if biased:
                    for c in range(width):
                        a[i, c] += b[c]
                    for c in range(width):
                        u[i, c] += c_up[c]
                for c in range(width):
                    o[at, c], a[i, c], u[i, c] = value_and_slopes(a[i, c], u[i, c])
                if copy:
                    for c in range(width):
                        low[i, c] = to_bfloat16(bits[at, c])

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

        @kernel(name=f"times_{computes}_slopes")
        def times_slopes(memory, d, gate, up, d_gate, n):
            """d_gate = d times the slope at gate; d *= the slope at up."""
            a, o = vector(memory, d, n), vector(memory, d_gate, n)
            g, u = vector(memory, gate, n), vector(memory, up, n)
            for i in range(n):
                _, slope, slope_up = value_and_slopes(g[i], u[i])
                o[i], a[i] = a[i] * slope, a[i] * slope_up

        _register(computes)
        return value_and_slopes

    return decorate


def _register(computes: str) -> None:
    """Register the rules of the gate after its layers, alone, and in decoding."""
    both = (("transpose", ""), "linear", ("transpose", ""), "linear", computes)
    register(Rule(
        name=f"linear, linear + {computes}", covers=both, kernel=f"bias_{computes}", stages=("train", "fill"),
        match=match, forward=forward, backward=backward,
        reason="both slopes are left where the products were, and become their cotangents without another exp",
    ))  # fmt: skip
    register(Rule(
        name=computes, covers=(computes,), kernel=computes, stages=("train", "fill"), forward=forward_alone,
        backward=backward_alone,
    ))  # fmt: skip
    register(Rule(
        name=f"linear, linear + {computes}", covers=both, kernel=computes, stages=("decode",), match=match,
        forward=decode, reason="a thread gates the columns that it has just made, while they are in the first cache",
    ))  # fmt: skip


@kernel
def gate_back(memory, d, gate, up, out, out_up, copy, copy_up, rows, width, biased, adds, adds_up):
    """gate *= d, up *= d, with copies in bfloat16; if `biased`, out and out_up are their sums over rows."""
    a, u, b = matrix(memory, gate, rows, width), matrix(memory, up, rows, width), matrix(memory, d, rows, width)
    o, o_up = vector(memory, out, width), vector(memory, out_up, width)
    bits, low = matrix_of_bits(memory, gate, rows, width), matrix_of_bfloat16(memory, copy, rows, width)
    bits_up, low_up = matrix_of_bits(memory, up, rows, width), matrix_of_bfloat16(memory, copy_up, rows, width)
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
        if copy:
            for c in range(width):
                low[i, c] = to_bfloat16(bits[i, c])
            for c in range(width):
                low_up[i, c] = to_bfloat16(bits_up[i, c])


def match(node: Any, graph: Any) -> tuple[Any, ...] | None:
    """linear and linear, both with a bias or both without -> a gate, which alone reads their results."""
    layers = [graph.only(x, "linear") for x in node.inputs]
    if None in layers or len({len(layer.inputs) for layer in layers}) > 1:
        return None
    return (*(n for layer in layers for n in linear.match(layer, graph)), node)


def _layers(group: Group) -> list[Group]:
    """Return the groups of the gate's layer and of the other."""
    nodes = group.nodes[:-1]
    first = next(i for i, node in enumerate(nodes) if node.equation.name == "linear") + 1
    return [Group(group.rule, nodes[:first]), Group(group.rule, nodes[first:])]


def _slopes(builder: Builder, layers: list[Group], shape: tuple[int, ...]) -> list[Buffer]:
    """Return the buffers of the products, which become the slopes and then the cotangents."""
    return [builder.saved(linear.linear_node(layer), "pre", shape) for layer in layers]


def forward(builder: Builder, group: Group) -> None:
    """Both products, then everything element-wise in one pass."""
    layers, last = _layers(group), group.nodes[-1]
    gate, up = _slopes(builder, layers, last.results[0][0])
    linear.product(builder, layers[0], gate, 0)
    linear.product(builder, layers[1], up, 0)
    bias, bias_up = (linear.bias_of(builder, linear.linear_node(layer)) for layer in layers)
    builder.emit(
        group.rule.kernel, last, gate=gate, up=up, bias=bias, bias_up=bias_up, biased=int(bias != 0),
        **linear.read_by_products(builder, last),
    )  # fmt: skip


def backward(builder: Builder, group: Group) -> None:
    """Both cotangents and the biases' gradients in one pass, then the products."""
    layers, last = _layers(group), group.nodes[-1]
    nodes, d = [linear.linear_node(layer) for layer in layers], builder.cotangent(last)
    gate, up = _slopes(builder, layers, d.shape)
    biased = len(nodes[0].inputs) > 2
    (out, adds), (out_up, adds_up) = (builder.gradient(n.inputs[2]) if biased else (0, 0) for n in nodes)
    builder.emit(
        "gate_back", last, d=d, gate=gate, up=up, out=out, out_up=out_up, copy=builder.copy(gate, id(nodes[0])),
        copy_up=builder.copy(up, id(nodes[1])), rows=d.rows, width=d.width, biased=int(biased), adds=adds,
        adds_up=adds_up,
    )  # fmt: skip
    linear.product_back(builder, layers[0], gate)
    linear.product_back(builder, layers[1], up)


def forward_alone(builder: Builder, group: Group) -> None:
    """One pass, out of place."""
    (node,) = group.nodes
    _emit_alone(builder, node, *map(builder.value, node.inputs))


def _emit_alone(builder: Builder, node: Any, gate: Buffer, up: Buffer) -> None:
    y = builder.result(node)
    builder.emit(node.equation.name, node, gate=gate, up=up, y=y, rows=y.rows, width=y.width, part=PART, parts=PARTS)


def backward_alone(builder: Builder, group: Group) -> None:
    """The slopes are computed anew."""
    (node,) = group.nodes
    (gate, up), d = node.inputs, builder.cotangent(node)
    d_gate = builder.fresh_gradient(gate)
    builder.emit(
        f"times_{node.equation.name}_slopes", node, d=d, gate=builder.value(gate), up=builder.value(up),
        d_gate=d_gate, n=d.size,
    )  # fmt: skip
    builder.join(gate, d_gate, node)
    builder.join(up, d, node)


def decode(builder: Builder, group: Group) -> None:
    """Each thread gates the columns that it has just made, so they need not meet between."""
    layers, last = _layers(group), group.nodes[-1]
    for layer in layers:
        row_product.forward(builder, layer)
    _emit_alone(builder, last, *(builder.result(linear.linear_node(layer)) for layer in layers))
