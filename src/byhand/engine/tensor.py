"""Tensor: an array, its gradient, and the node that made it.

Operators are equations: `x + y` applies `add`, `x @ y` applies `matmul`. Data is row-major and never modified by
an equation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byhand.engine.arrays import Array, namespace

if TYPE_CHECKING:
    from byhand.engine.equation import Equation


@dataclass(slots=True, eq=False)
class Node:
    """One application: the equation, its inputs and settings, the arrays that it saved, its name."""

    equation: Equation
    inputs: tuple[Tensor, ...]
    static: dict[str, Any]
    saved: tuple[Array, ...]
    name: str
    results: tuple[tuple[tuple[int, ...], Any], ...]  # (shape, dtype) of each result


class Tensor:
    """An array in a graph.

    data           the array; anything without an array namespace (a list, a number) becomes a NumPy array
    grad           dloss/ddata after `backward()`, the same shape and dtype; None before
    requires_grad  True for parameters and for everything computed from them while recording
    node, index    the application that made this tensor, None for a leaf, and the number of its result
    name           a dotted name such as `blocks.0.attn.weights`
    """

    __array_ufunc__ = None  # so that `array + tensor` calls the tensor, not each element of the array
    __slots__ = ("__weakref__", "data", "grad", "index", "name", "node", "requires_grad")

    def __init__(
        self,
        data: Any,
        requires_grad: bool = False,
        name: str = "",
        node: Node | None = None,
        index: int = 0,
    ) -> None:
        self.data: Array = data if hasattr(data, "__array_namespace__") else _default_array(data)
        self.grad: Array | None = None
        self.requires_grad = requires_grad
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

    def backward(self, d: Any = None) -> None:
        """Add d(self)/d(leaf) to `.grad` of every leaf that requires it; `d` is the cotangent, 1 for a scalar.

        The graph stays as it was: a second call on it adds the same gradients once more.
        """
        from byhand.engine.backward import backward

        backward(self, d)

    def reshape(self, *shape: int | tuple[int, ...]) -> Tensor:
        """Return the same elements in row-major order under another shape; one length may be -1."""
        lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        return _operator("reshape")(self, shape=tuple(lengths))

    def _constant(self, other: Any) -> Any:
        """Turn a Python number into a scalar of this tensor's dtype, so that float32 stays float32.

        A fraction keeps its own type if the tensor holds integers, so that nothing is truncated.
        """
        if not isinstance(other, (int, float)):
            return other
        xp = namespace(self.data)
        fits = isinstance(other, int) or xp.isdtype(self.dtype, "real floating")
        return xp.asarray(other, dtype=self.dtype) if fits else xp.asarray(other)

    def __add__(self, other: Any) -> Tensor:
        return _operator("add")(self, self._constant(other))

    def __radd__(self, other: Any) -> Tensor:
        return _operator("add")(self._constant(other), self)

    def __mul__(self, other: Any) -> Tensor:
        return _operator("mul")(self, self._constant(other))

    def __rmul__(self, other: Any) -> Tensor:
        return _operator("mul")(self._constant(other), self)

    def __neg__(self) -> Tensor:
        return self * -1

    def __sub__(self, other: Any) -> Tensor:
        if isinstance(other, (int, float)):
            return self + (-other)
        return self + (other if isinstance(other, Tensor) else Tensor(other)) * -1

    def __rsub__(self, other: Any) -> Tensor:
        return (self * -1) + other

    def __truediv__(self, other: float) -> Tensor:
        if not isinstance(other, (int, float)):
            return NotImplemented  # no equation divides by a tensor
        return self * (1.0 / other)

    def __matmul__(self, other: Any) -> Tensor:
        return _operator("matmul")(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _operator("matmul")(other, self)

    def __repr__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        return f"Tensor({name}{tuple(self.shape)} {self.dtype})"


def _operator(name: str) -> Equation:
    """Find the equation that an operator applies; the registry is filled when `byhand.equations` is imported."""
    from byhand.engine.equation import registry

    return registry[name]


def _default_array(data: Any) -> Array:
    """Make an array of a list or number; imported on first use, so that the engine loads without NumPy."""
    from byhand.host import as_array

    return as_array(data)
