"""Fusion: split a recorded graph into groups by the rules, and emit every group's calls with their cost.

What no rule takes goes to the fallback. The rules themselves stand beside the kernels.
"""

from __future__ import annotations

from typing import Any

from byhand.engine import Node
from byhand.runtimes.loops.graph.record import Graph
from byhand.runtimes.loops.lowering import cost
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
        cost.assign(group.nodes, ahead[i], back[-1 - i] if builder.trains else None)


def _emitted(builder: Builder, group: Group, emit: Emit | None) -> list[Call]:
    assert emit, f"{group.rule.name} has no backward calls"
    before = len(builder.calls)
    emit(builder, group)
    return builder.calls[before:]
