"""Record: run the ordinary model code once; keep its nodes, and each result's number of uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from byhand.engine import Equation, Node, Record, Tensor, Variable, interpreting
from byhand.engine.arrays import as_tuple
from byhand.engine.backward import applications
from byhand.engine.graph.outline import Allocation, Outline
from byhand.engine.interpreter import Evaluate


class Graph:
    """The nodes behind one result in topological order, and the step's inputs."""

    def __init__(self, root: Variable, inputs: dict[str, Any]) -> None:
        self.root = root
        self.nodes: list[Node] = applications(root)
        self.inputs = inputs
        self._uses = Counter(key(t) for node in self.nodes for t in node.inputs)
        self._uses[key(root)] += 1

    def uses(self, tensor: Variable) -> int:
        """Return the number of applications that read this tensor, plus one for the root."""
        return self._uses[key(tensor)]

    def only(self, tensor: Variable, *names: str) -> Node | None:
        """Return the tensor's producer if it applies one of these equations and the tensor has a single use."""
        node = tensor.node
        return node if node is not None and node.equation.name in names and self.uses(tensor) == 1 else None

    def only_reader(self, node: Node) -> Node | None:
        """Return the only consumer of a node's results; None if there are several, or none as for the root."""
        readers = [n for n in self.nodes if any(t.node is node for t in n.inputs)]
        return readers[0] if len(readers) == 1 else None

    def input_name(self, tensor: Variable) -> str:
        """Return the name of the step's input in this tensor; "" if it is not one."""
        return next((name for name, array in self.inputs.items() if tensor.data is array), "")


def key(tensor: Variable) -> tuple[int, int]:
    """Return a key for a graph's array."""
    return (id(tensor), -1) if tensor.node is None else (id(tensor.node), tensor.index)


class RecordShapes(Record):
    """Record by shape: results that depend on parameters, and their saved arrays, are outlines.

    Frozen parameters count: a plan reads them too, and they have no data when it is made.
    """

    def follows(self, tensor: Tensor) -> bool:
        """Return whether the tensor depends on a parameter."""
        return tensor.requires_grad or tensor.frozen or tensor.node is not None

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Record an application to outlines."""
        try:
            result = super().apply(equation, tuple(map(self._outlined, inputs)), static, name)
        except Exception:  # it needs values: run it on zeros, which raises genuine errors again
            result = super().apply(equation, tuple(map(self._with_zeros, inputs)), static, name)
        for tensor in as_tuple(result):
            if (node := tensor.node) is not None:
                node.inputs, node.saved = inputs, tuple(map(_outline_of, node.saved))
                tensor.data = _outline_of(tensor.data)
        return result

    def _outlined(self, tensor: Tensor) -> Tensor:
        if not self.follows(tensor) and not isinstance(tensor.data, Outline):
            return tensor
        return self._with(Outline.of(tensor.data, inside=True), tensor)

    def _with_zeros(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor.data, Outline):
            return tensor
        return self._with(np.zeros(tensor.shape, tensor.dtype), tensor)

    def _with(self, data: Any, tensor: Tensor) -> Tensor:
        made = Tensor(data, tensor.requires_grad, tensor.name)
        made.frozen = self.follows(tensor)
        return made


def _outline_of(array: Any) -> Any:
    """Return the outline of a computed array; integer arrays that were given stay."""
    if isinstance(array, Outline):
        return Outline.of(array) if array.inside else array
    return array if not np.issubdtype(array.dtype, np.floating) else Outline(array.shape, array.dtype)


class EvaluateShapes(Evaluate):
    """Evaluate shapes without a tape; measures peak live memory, temporaries included."""

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Run the forward half on outlines."""
        inside = tuple(Tensor(Outline.of(t.data, inside=True)) for t in inputs)
        result = super().apply(equation, inside, static, name)
        for tensor in as_tuple(result):
            tensor.data = Outline.of(tensor.data)
        return result


def live_bytes(compute: Callable[..., Any], **inputs: Any) -> int:
    """Return the peak bytes of arrays in compute(*inputs) without recording."""
    before = Allocation.most = Allocation.live
    with interpreting(EvaluateShapes()):
        compute(*inputs.values())
    return Allocation.most - before


def record(compute: Callable[..., Variable], **inputs: Any) -> Graph:
    """Run compute(*inputs) once, recording; only the inputs' shapes matter."""
    with interpreting(RecordShapes()):
        return Graph(compute(*inputs.values()), inputs)
