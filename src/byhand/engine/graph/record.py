"""Record: run the ordinary model code once and keep the applications, and the readers of every result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from byhand.engine import Equation, Node, Record, Tensor, Variable, interpreting
from byhand.engine.backward import applications
from byhand.engine.graph.outline import Outline


class Graph:
    """The applications behind one result, each after those it needs, and the arrays that are new in every step."""

    def __init__(self, root: Variable, inputs: dict[str, Any], cache: RecordedCache | None = None) -> None:
        self.root = root
        self.cache = cache
        self.nodes: list[Node] = applications(root)
        self.inputs = inputs
        self._uses = Counter(key(t) for node in self.nodes for t in node.inputs)
        self._uses[key(root)] += 1
        if cache is not None:
            self._count_cached(cache)

    def _count_cached(self, cache: RecordedCache) -> None:
        """Count the cache as a reader, and the applications that lead to nothing else."""
        known = set(map(id, self.nodes))
        for tensor in cache.given:
            self._uses[key(tensor)] += 1
            for node in applications(tensor):
                if id(node) not in known:
                    known.add(id(node))
                    self._uses.update(map(key, node.inputs))

    def uses(self, tensor: Variable) -> int:
        """Return how many applications read this tensor (the root counts as read once more)."""
        return self._uses[key(tensor)]

    def only(self, tensor: Variable, *names: str) -> Node | None:
        """Return the application of one of these equations that made the tensor, if the tensor has one reader."""
        node = tensor.node
        return node if node is not None and node.equation.name in names and self.uses(tensor) == 1 else None

    def only_reader(self, node: Node) -> Node | None:
        """Return the one application that reads this node's result; None if several do, or it is the root."""
        readers = [n for n in self.nodes if any(t.node is node for t in n.inputs)]
        return readers[0] if len(readers) == 1 and node is not self.root.node else None

    def stored(self, tensor: Variable) -> tuple[Variable, int | None]:
        """Return what was put into the cache where the tensor came out, and the layer; without a cache the tensor."""
        return self.cache.stored(tensor) if self.cache else (tensor, None)

    def input_name(self, tensor: Variable) -> str:
        """Return the name of the step's array that the tensor holds, or "" for another."""
        return next((name for name, array in self.inputs.items() if tensor.data is array), "")


def key(tensor: Variable) -> tuple[int, int]:
    """Return a key for an array of the graph."""
    return (id(tensor), -1) if tensor.node is None else (id(tensor.node), tensor.index)


class RecordedCache:
    """Stands in for a KV cache while recording: remembers which tensors went into it and came out, for which layer.

    Its length is an input of the graph, called `position`: a plan reads it when it runs.

    room  positions that the cache has room for
    read  positions that the new ones read; as many as are new, if not given: they are the first
    """

    def __init__(self, room: int, read: int | None = None) -> None:
        self.length = np.zeros((), np.int64)
        self.room = room
        self.given: list[Variable] = []
        self._read = read
        self._stored: dict[int, tuple[Variable, int]] = {}
        self._kept: list[Variable] = []

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return stand-ins for all keys and values."""
        self.given += k, v
        both = self._stand_in(k), self._stand_in(v)
        self._stored |= {id(t): (new, layer) for t, new in zip(both, (k, v), strict=True)}
        self._kept += both
        return both

    def _stand_in(self, new: Tensor) -> Tensor:
        b, heads, steps, width = new.shape
        data = new.data if self._read in (None, steps) else Outline((b, heads, self._read, width), new.dtype)
        return Tensor(data, requires_grad=True)

    def advance(self, n: int) -> None:
        """Do nothing: a plan reads the position when it runs."""

    def holds(self, tensor: Variable) -> bool:
        """Return whether the tensor stands for all keys or values of a layer."""
        return id(tensor) in self._stored

    def stored(self, tensor: Variable) -> tuple[Variable, int | None]:
        """Return what was put into the cache where the tensor came out, and the layer; else the tensor and None."""
        return self._stored.get(id(tensor), (tensor, None))


class RecordShapes(Record):
    """Record without computing: results that depend on parameters, and what is saved of them, are outlines."""

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Record the application of the equation to arrays that are not there."""
        try:
            result = super().apply(equation, tuple(map(_outlined, inputs)), static, name)
        except Exception:  # a forward half that needs numbers; or one that fails with them too, and then says so
            result = super().apply(equation, tuple(map(_with_zeros, inputs)), static, name)
        for tensor in result if isinstance(result, tuple) else (result,):
            if (node := tensor.node) is not None:
                node.inputs, node.saved = inputs, tuple(map(_outline_of, node.saved))
                tensor.data = _outline_of(tensor.data)
        return result


def _outlined(tensor: Tensor) -> Tensor:
    if not tensor.requires_grad and not isinstance(tensor.data, Outline):
        return tensor
    return Tensor(Outline.of(tensor.data, inside=True), tensor.requires_grad, tensor.name)


def _with_zeros(tensor: Tensor) -> Tensor:
    if not isinstance(tensor.data, Outline):
        return tensor
    return Tensor(np.zeros(tensor.shape, tensor.dtype), tensor.requires_grad, tensor.name)


def _outline_of(array: Any) -> Any:
    """Return the outline of what an equation computed; an array of integers that it was given stays."""
    if isinstance(array, Outline):
        return Outline.of(array) if array.inside else array
    return array if not np.issubdtype(array.dtype, np.floating) else Outline(array.shape, array.dtype)


def record(compute: Callable[..., Variable], cache: RecordedCache | None = None, **inputs: Any) -> Graph:
    """Run compute(*inputs) once, recording; only the inputs' shapes matter. With a cache it is passed as the last."""
    with interpreting(RecordShapes()):
        if cache is None:
            return Graph(compute(*inputs.values()), inputs)
        return Graph(compute(*inputs.values(), cache), {**inputs, "position": cache.length}, cache)
