"""Fusion: split a recorded graph into groups by the rules, emit every group's calls, and count their operations.

Applications without a rule run the equation's own forward and derivative, in NumPy, inside the plan. That is correct
but slower (Python, fresh arrays, the GIL); `byhand plan` shows it as `reference`.

A call that multiplies matrices states its own operations. The group's other operations are apportioned among its
other calls by bytes touched, since such loops are memory-bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from byhand.engine import Node
from byhand.engine.graph.operations import arithmetic_of, products_of
from byhand.engine.graph.record import Graph
from byhand.runtimes.loops import kernels
from byhand.runtimes.loops.pattern.rules import Emit, Group, Rule, Stage, registered
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer, Call, PythonStep

kernels.load()


@cache
def rules_of(stage: Stage) -> tuple[Rule, ...]:
    """Return a stage's rules in the order of trial: largest pattern first."""
    of_stage = (rule for rule in registered if stage in rule.stages)
    return tuple(sorted(of_stage, key=lambda rule: (-rule.size, not rule.reason, rule.name)))


def without(name: str) -> tuple[Rule, ...]:
    """Return the rules of training except one, to measure its effect."""
    return tuple(rule for rule in rules_of("train") if rule.name != name)


def groups_of(graph: Graph, rules: tuple[Rule, ...]) -> list[Group]:
    """Split the graph into groups, in forward order."""
    groups: list[Group] = []
    taken: set[int] = set()
    for node in reversed(graph.nodes):
        if id(node) not in taken:
            group = _group_at(node, graph, rules)
            taken |= {id(n) for n in group.nodes}
            groups.append(group)
    return groups[::-1]


def _group_at(node: Node, graph: Graph, rules: tuple[Rule, ...]) -> Group:
    for rule in rules:
        if rule.ends == node.equation.name and (group := rule.match(node, graph)):
            return group
    return Group(FALLBACK, (node,))


def emit_groups(builder: Builder, groups: list[Group]) -> None:
    """Emit the groups' calls: forward in order, then, in training, backward in reverse."""
    ahead = [_emitted(builder, group, group.rule.forward) for group in groups]
    back = [_emitted(builder, group, _backward(group)) for group in reversed(groups)] if builder.trains else []
    for i, group in enumerate(groups):
        assign_operations(group.nodes, ahead[i], back[-1 - i] if builder.trains else None)


def _backward(group: Group) -> Emit | None:
    """Return the emitter of the group's backward calls; None if all its inputs are frozen or given."""
    learns = any(t.requires_grad for node in group.nodes for t in node.inputs)
    return group.rule.backward if learns else lambda builder, group: None


def _emitted(builder: Builder, group: Group, emit: Emit | None) -> list[Call]:
    assert emit, f"{group.rule.name} has no backward calls"
    before = len(builder.calls)
    emit(builder, group)
    if builder.decodes and builder.result(group.nodes[-1]).kind == "value":
        builder.barrier()
    return builder.calls[before:]


def assign_operations(nodes: Sequence[Node], ahead: list[Call], back: list[Call] | None) -> None:
    """Assign a group's operations outside matrix products to its calls; `back` is None in inference.

    If one direction has no calls, the other's do its work and get its operations.
    """
    costs = [arithmetic_of(node) for node in nodes]
    forward, backward = sum(f for f, _ in costs), sum(b for _, b in costs)
    if back is None:
        _divide(forward, ahead)
    elif not ahead or not back:
        _divide(forward + backward, ahead or back)
    else:
        _divide(forward, ahead)
        _divide(backward, back)


def _divide(operations: int, calls: list[Call]) -> None:
    apportioned = [call for call in calls if call.apportioned]
    total = sum(call.bytes for call in apportioned)
    for call in apportioned:
        call.flops += operations * call.bytes // max(1, total)


def run_forward(builder: Builder, group: Group) -> None:
    """Run the forward half and copy its results into the arena."""
    (node,) = group.nodes
    inputs, results = _inputs(builder, node), _results(builder, node)
    step = PythonStep(inputs, results, keeps=builder.trains)
    builder.emit_python(node, products_of(node)[0], step, [*_buffers(inputs), *results])


def run_backward(builder: Builder, group: Group) -> None:
    """Run the vjp and accumulate its results into the inputs' cotangents.

    The forward half may have saved views of inputs and results, so their lifetimes extend to this call.
    """
    (node,) = group.nodes
    cotangents = tuple(builder.cotangent(node, i) for i in range(len(node.results)))
    targets = tuple(builder.gradient(t) if t.requires_grad else None for t in node.inputs)
    inputs, written = _inputs(builder, node), [target[0] for target in targets if target]
    touched = [*cotangents, *written, *_buffers(inputs), *_results(builder, node)]
    builder.emit_python(node, products_of(node)[1], PythonStep(inputs, cotangents, targets), touched)


FALLBACK = Rule("reference", pattern="", kernel="", stages=(), forward=run_forward, backward=run_backward)


def _inputs(builder: Builder, node: Node) -> tuple[tuple[Any, tuple[int, ...]], ...]:
    """Return each input's buffer, or a constant's array, which may have any type."""
    return tuple((t.data if builder.is_constant(t) else builder.value(t), tuple(t.shape)) for t in node.inputs)


def _buffers(inputs: tuple[tuple[Any, tuple[int, ...]], ...]) -> list[Buffer]:
    return [b for b, _ in inputs if isinstance(b, Buffer)]


def _results(builder: Builder, node: Node) -> tuple[Buffer, ...]:
    return tuple(builder.result(node, i) for i in range(len(node.results)))
