"""Variable and Node: an array in a graph, and the application that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.engine.arrays import Array
from byhand.engine.equation import Equation


@dataclass(slots=True, eq=False)
class Node:
    """One application: the equation, its inputs and settings, its saved arrays, its name."""

    equation: Equation
    inputs: tuple[Any, ...]  # of variables
    static: dict[str, Any]
    saved: tuple[Array, ...]
    name: str
    results: tuple[tuple[tuple[int, ...], Any], ...]  # (shape, dtype) of each result


class Variable:
    """An array in a graph; `Tensor` adds operators.

    data           the array; anything without an array namespace (a list, a number) becomes a NumPy array
    grad           dloss/ddata after `backward()`, the same shape and dtype; None before
    requires_grad  True for parameters and for everything computed from them while recording
    frozen         a parameter that no step changes: it gets no gradient, but a recorded graph names it
    node, index    the application that made this tensor, None for a leaf, and the index of its result
    name           a dotted name such as `blocks.0.attn.weights`
    """

    __slots__ = ("__weakref__", "data", "frozen", "grad", "index", "name", "node", "requires_grad")

    def __init__(
        self, data: Any, requires_grad: bool = False, name: str = "", node: Node | None = None, index: int = 0
    ) -> None:
        self.data: Array = data if hasattr(data, "__array_namespace__") else _default_array(data)
        self.grad: Array | None = None
        self.requires_grad = requires_grad
        self.frozen = False
        self.name = name
        self.node = node
        self.index = index

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes, outermost first."""
        return self.data.shape

    @property
    def dtype(self) -> Any:
        """The type of one element."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.data.ndim

    def item(self) -> float:
        """Return the one element of a scalar tensor as a Python number."""
        return self.data.item()

    def __repr__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        return f"Tensor({name}{tuple(self.shape)} {self.dtype})"


def _default_array(data: Any) -> Array:
    """Convert a list or number to an array; imports on first use, so that the engine loads without NumPy."""
    from byhand.host import as_array

    return as_array(data)
