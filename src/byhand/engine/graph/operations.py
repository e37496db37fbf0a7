"""The cost of a node, forward and backward, from its equation and shapes."""

from __future__ import annotations

from collections.abc import Callable

from byhand.engine.node import Node


def products_of(node: Node) -> tuple[int, int]:
    """Return the FLOPs of a node's matrix products."""
    return _of(node, node.equation.products)


def arithmetic_of(node: Node) -> tuple[int, int]:
    """Return a node's FLOPs outside matrix products."""
    return _of(node, node.equation.flops)


def _of(node: Node, cost: Callable[..., tuple[int, int]] | None) -> tuple[int, int]:
    return cost(*(t.shape for t in node.inputs), **node.static) if cost else (0, 0)
