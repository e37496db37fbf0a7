"""Matching: the applications of a graph that a pattern covers."""

from __future__ import annotations

from byhand.engine import Node, Variable
from byhand.engine.graph.record import Graph
from byhand.runtimes.loops.pattern.language import Applied, Either, Leaf, Pattern, StepInput

Found = dict[tuple[str, ...] | int, Node]  # by identity; those with a numbered result also by equation


def matched(pattern: Applied, node: Node, graph: Graph) -> tuple[Node, ...] | None:
    """Return the applications of the pattern that ends in this node, each after its inputs; None without a match.

    Nothing outside the pattern may read an inner result.
    """
    if node.equation.name not in pattern.names:
        return None
    found = _inputs(pattern, node, graph, {})
    return None if found is None else tuple(dict.fromkeys(found.values()))


def _inputs(pattern: Applied, node: Node, graph: Graph, found: Found) -> Found | None:
    known: Found | None = found
    for each, tensor in zip(pattern.inputs, node.inputs, strict=False):
        known = None if known is None else _fit(each, tensor, graph, known)
    return None if known is None else known | {id(node): node}


def _fit(pattern: Pattern, tensor: Variable, graph: Graph, found: Found) -> Found | None:
    if isinstance(pattern, Applied):
        return _made(pattern, tensor, graph, found)
    if isinstance(pattern, Either):
        each = (_fit(option, tensor, graph, found) for option in pattern.options)
        return next((known for known in each if known is not None), None)
    if isinstance(pattern, StepInput):
        name = graph.input_name(tensor)
        return found if name and pattern.name in ("", name) else None
    if isinstance(pattern, Leaf):
        return found if tensor.node is None else None
    return found


def _made(pattern: Applied, tensor: Variable, graph: Graph, found: Found) -> Found | None:
    node = graph.only(tensor, *pattern.names)
    if node is None:
        return None
    if pattern.result is None:
        return _inputs(pattern, node, graph, found)
    if tensor.index != pattern.result or found.get(pattern.names, node) is not node:
        return None
    return _inputs(pattern, node, graph, found | {pattern.names: node})
