"""Rules of activations and gates: after their linear layers, or alone.

After the layers one pass adds the biases, and overwrites the product, which nothing else reads, with the derivative
in each input. The backward pass only multiplies: it needs no further exp or array. If the derivative is a function
of the output, the output overwrites the product instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.engine.graph.record import Graph
from byhand.runtimes.loops.kernels.linear import linear
from byhand.runtimes.loops.pattern.rules import Emit, Group, Rule, register
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import PART, PARTS, Buffer


@dataclass(frozen=True)
class Calls:
    """An activation's emitters, after its layers and alone, and why the fused calls are faster."""

    forward: Emit
    backward: Emit
    forward_alone: Emit
    backward_alone: Emit
    reason: str


def register_rules(computes: str, inputs: int, calls: Calls) -> None:
    """Register an activation's rules, after its layers and alone; `row_product` has those of generation."""
    layers = ", ".join([linear.LINEAR] * inputs)
    name = f"{', '.join(['linear'] * inputs)} + {computes}"
    register(Rule(
        name=name, pattern=f"{computes}({layers})", kernel=f"bias_{computes}", stages=("train",),
        where=alike, forward=calls.forward, backward=calls.backward, reason=calls.reason,
    ))  # fmt: skip
    register(Rule(
        name=computes, pattern=f"{computes}({', '.join('xy'[:inputs])})", kernel=computes, stages=("train", "fill"),
        forward=calls.forward_alone, backward=calls.backward_alone,
    ))  # fmt: skip


def alike(group: Group, graph: Graph) -> bool:
    """Return whether all layers have a bias, or none has."""
    return len({len(layer.inputs) for layer in group.of("linear")}) == 1


def layers_of(group: Group) -> list[Group]:
    """Return the group of each linear layer."""
    found: list[Group] = []
    start = 0
    for i, node in enumerate(group.nodes[:-1]):
        if node.equation.name == "linear":
            found.append(Group(group.rule, group.nodes[start : i + 1]))
            start = i + 1
    return found


def _products(builder: Builder, layers: list[Group], shape: tuple[int, ...]) -> list[Buffer]:
    """Return the buffers of the products, which become the derivatives."""
    return [builder.saved(linear.linear_node(layer), "pre", shape) for layer in layers]


def forward_with_derivatives(builder: Builder, group: Group) -> None:
    """The products, then one element-wise pass."""
    layers, last = layers_of(group), group.nodes[-1]
    made, nodes = _products(builder, layers, last.results[0][0]), [linear.linear_node(layer) for layer in layers]
    for layer, product in zip(layers, made, strict=True):
        linear.product(builder, layer, product, 0)
    operands: dict[str, Any] = linear.read_by_products(builder, last)
    if len(layers) == 1:
        operands |= {"x": made[0], "bias": linear.bias_or_zeros(builder, nodes[0])}
    else:
        bias, bias_up = (linear.bias_of(builder, node) for node in nodes)
        operands |= {"gate": made[0], "up": made[1], "bias": bias, "bias_up": bias_up, "biased": int(bias != 0)}
    builder.emit(group.rule.kernel, last, **operands)


def backward_with_derivative(builder: Builder, group: Group) -> None:
    """Cotangent times derivative and the bias's gradient in one pass, then the products."""
    inner, last = linear.linear_node(group), group.nodes[-1]
    d = builder.cotangent(last)
    biased = len(inner.inputs) > 2
    out, adds = builder.gradient(inner.inputs[2]) if biased else (builder.scratch(inner, "sums", (d.width,)), 0)
    builder.emit(
        "activation_back", last, d=d, derivative=builder.saved(inner, "pre", d.shape), out=out,
        copy=builder.copy(d, id(inner)), rows=d.rows, width=d.width, adds=adds,
    )  # fmt: skip
    linear.product_back(builder, group, d)


def backward_with_derivatives(builder: Builder, group: Group) -> None:
    """Both cotangents, overwriting the derivatives, and the biases' gradients in one pass, then the products."""
    layers, last = layers_of(group), group.nodes[-1]
    nodes, d = [linear.linear_node(layer) for layer in layers], builder.cotangent(last)
    gate, up = _products(builder, layers, d.shape)
    biased = len(nodes[0].inputs) > 2
    (out, adds), (out_up, adds_up) = (builder.gradient(n.inputs[2]) if biased else (0, 0) for n in nodes)
    builder.emit(
        "gate_back", last, d=d, gate=gate, up=up, out=out, out_up=out_up, copy=builder.copy(gate, id(nodes[0])),
        copy_up=builder.copy(up, id(nodes[1])), rows=d.rows, width=d.width, biased=int(biased), adds=adds,
        adds_up=adds_up,
    )  # fmt: skip
    linear.product_back(builder, layers[0], gate)
    linear.product_back(builder, layers[1], up)


def forward_in_place(builder: Builder, group: Group) -> None:
    """Product, then bias and value."""
    last = group.nodes[-1]
    y, bias = builder.result(last), linear.bias_or_zeros(builder, linear.linear_node(group))
    linear.product(builder, group, y, 0)
    builder.emit(group.rule.kernel, last, x=y, bias=bias, rows=y.rows, width=y.width)


def backward_in_place(builder: Builder, group: Group) -> None:
    """The cotangent times the derivative, then the linear layer's backward calls."""
    last = group.nodes[-1]
    d = _times_derivative(builder, last, builder.result(last))
    linear.bias_back(builder, group, d)
    linear.product_back(builder, group, d)


def _times_derivative(builder: Builder, node: Any, x: Buffer) -> Buffer:
    """Return the cotangent times the derivative, in place; x is the input or the output."""
    d = builder.cotangent(node)
    builder.emit(f"{node.equation.name}_back", node, d=d, x=x, n=d.size)
    return d


def forward_alone(builder: Builder, group: Group) -> None:
    """One pass, out of place."""
    (node,) = group.nodes
    y = builder.result(node)
    builder.emit(group.rule.kernel, node, x=builder.value(node.inputs[0]), y=y, n=y.size)


def backward_by_input(builder: Builder, group: Group) -> None:
    """The derivative is recomputed from the input."""
    (node,) = group.nodes
    x = node.inputs[0]
    builder.join(x, _times_derivative(builder, node, builder.value(x)), node)


def backward_by_output(builder: Builder, group: Group) -> None:
    """The derivative is a function of the output."""
    (node,) = group.nodes
    builder.join(node.inputs[0], _times_derivative(builder, node, builder.result(node)), node)


def gate_alone(builder: Builder, group: Group) -> None:
    """One pass, out of place."""
    (node,) = group.nodes
    emit_gate(builder, node, *map(builder.value, node.inputs))


def emit_gate(builder: Builder, node: Any, gate: Buffer, up: Buffer) -> None:
    """Append the call of a gate's kernel; each thread takes its columns."""
    y = builder.result(node)
    builder.emit(node.equation.name, node, gate=gate, up=up, y=y, rows=y.rows, width=y.width, part=PART, parts=PARTS)


def gate_back_alone(builder: Builder, group: Group) -> None:
    """The derivatives are recomputed from the inputs."""
    (node,) = group.nodes
    (gate, up), d = node.inputs, builder.cotangent(node)
    d_gate = builder.fresh_gradient(gate)
    builder.emit(
        f"{node.equation.name}_back", node, d=d, gate=builder.value(gate), up=builder.value(up),
        d_gate=d_gate, n=d.size,
    )  # fmt: skip
    builder.join(gate, d_gate, node)
    builder.join(up, d, node)


BY_INPUT = Calls(
    forward_with_derivatives, backward_with_derivative, forward_alone, backward_by_input,
    "bias, value and derivative in one pass over the widest array; the backward pass multiplies, without another exp",
)  # fmt: skip
BY_OUTPUT = Calls(
    forward_in_place, backward_in_place, forward_alone, backward_by_output, "bias and value in one pass, in place"
)
GATE = Calls(
    forward_with_derivatives, backward_with_derivatives, gate_alone, gate_back_alone,
    "both derivatives overwrite the products, and become their cotangents without another exp",
)  # fmt: skip
