"""Fusion: split a recorded graph into groups by the rules, emit every group's calls, and count their operations.

The fallback takes applications without a rule. A call that multiplies matrices states its own operations. All
others of the group's equations are divided among its other calls by the bytes that they touch: such loops take as
long as their reading and writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from byhand.engine import Node
from byhand.runtimes.loops.graph.record import Graph
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.fallback import FALLBACK
from byhand.runtimes.loops.lowering.ir import Call
from byhand.runtimes.loops.lowering.rules import Emit, Group, Rule


def groups_of(graph: Graph, rules: tuple[Rule, ...]) -> list[Group]:
    """Split the graph into groups, in the order in which they run forward."""
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
        if rule.ends == node.equation.name:
            nodes: Any = rule.match(node, graph) if rule.match else (node,)
            if nodes:
                return Group(rule, nodes)
    return Group(FALLBACK, (node,))


def emit_groups(builder: Builder, groups: list[Group]) -> None:
    """Emit the groups' calls: forward in order, then, in training, backward in reverse."""
    ahead = [_emitted(builder, group, group.rule.forward) for group in groups]
    back = [_emitted(builder, group, group.rule.backward) for group in reversed(groups)] if builder.trains else []
    for i, group in enumerate(groups):
        assign_operations(group.nodes, ahead[i], back[-1 - i] if builder.trains else None)


def _emitted(builder: Builder, group: Group, emit: Emit | None) -> list[Call]:
    assert emit, f"{group.rule.name} has no backward calls"
    before = len(builder.calls)
    emit(builder, group)
    return builder.calls[before:]


def assign_operations(nodes: Sequence[Node], ahead: list[Call], back: list[Call] | None) -> None:
    """Give a group's calls the operations of its equations beside matrix products; `back` is None in inference.

    If one direction has no calls, those of the other do its work and get its operations.
    """
    costs = [n.equation.flops(*(t.shape for t in n.inputs), **n.static) for n in nodes if n.equation.flops]
    forward, backward = sum(f for f, _ in costs), sum(b for _, b in costs)
    if back is None:
        _divide(forward, ahead)
    elif not ahead or not back:
        _divide(forward + backward, ahead or back)
    else:
        _divide(forward, ahead)
        _divide(backward, back)


def _divide(operations: int, calls: list[Call]) -> None:
    shared = [call for call in calls if call.shared]
    total = sum(call.bytes for call in shared)
    for call in shared:
        call.flops += operations * call.bytes // max(1, total)
