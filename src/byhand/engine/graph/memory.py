"""Memory: the bytes that a backward pass needs, from the shapes of a recorded graph."""

from __future__ import annotations

import math
from typing import Any

from byhand.engine.graph.outline import Outline
from byhand.engine.graph.record import Graph, key
from byhand.engine.node import Variable


def kept_bytes(graph: Graph) -> int:
    """Return the bytes of activations kept for the backward pass: results with a reader, and saved arrays.

    Views share storage and count once; parameters and the step's inputs do not count.
    """
    read = [t.data for node in graph.nodes for t in node.inputs if t.node is not None]
    arrays = [*read, graph.root.data, *(array for node in graph.nodes for array in node.saved)]
    return sum(storage.nbytes for storage in {a.storage for a in arrays if isinstance(a, Outline)})


def cotangent_bytes(graph: Graph) -> int:
    """Return the peak bytes of live cotangents in the backward pass, excluding parameters' gradients."""
    waiting = {key(graph.root): nbytes(graph.root)}
    most = 0
    for node in reversed(graph.nodes):
        given = sum(waiting.pop((id(node), index), 0) for index in range(len(node.results)))
        made = {key(t): nbytes(t) for t in node.inputs if t.requires_grad and t.node is not None}
        most = max(most, given + sum(waiting.values()) + sum(made.values()))
        waiting |= made
    return most


def boundary_bytes(graph: Graph, scope: str) -> int:
    """Return the bytes of results that cross from one child of a scope, such as `blocks.0`, to another.

    Rematerialisation of whole blocks keeps at least these.
    """

    def part(name: str) -> str:
        return ".".join(name.split(".")[:2]) if name.startswith(f"{scope}.") else ""

    crossing = {
        key(t): t for node in graph.nodes for t in node.inputs
        if t.node is not None and part(t.node.name) != part(node.name)
    }  # fmt: skip
    return sum(map(nbytes, crossing.values()))


def nbytes(x: Variable) -> int:
    """Return the bytes of a graph's array."""
    dtype: Any = x.dtype
    return math.prod(x.shape) * dtype.itemsize
