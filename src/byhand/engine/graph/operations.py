"""Operations of an application, forward and in the backward pass, as its equation states them for its shapes."""

from __future__ import annotations

from collections.abc import Callable

from byhand.engine.node import Node


def products_of(node: Node) -> tuple[int, int]:
    """Return the operations of its matrix products."""
    return _of(node, node.equation.products)


def arithmetic_of(node: Node) -> tuple[int, int]:
    """Return those of all other arithmetic."""
    return _of(node, node.equation.flops)


def _of(node: Node, cost: Callable[..., tuple[int, int]] | None) -> tuple[int, int]:
    return cost(*(t.shape for t in node.inputs), **node.static) if cost else (0, 0)
