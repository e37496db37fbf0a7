"""Tensor: an array, its gradient, and the node that made it.

Operators are equations: `x + y` applies `add`, `x @ y` applies `matmul`. Data is row-major and never modified by
an equation.
"""

from __future__ import annotations

from typing import Any

from byhand.engine.arrays import namespace
from byhand.engine.backward import backward
from byhand.engine.equation import Equation, registry
from byhand.engine.node import Variable


class Tensor(Variable):
    """A variable with operators and `backward`."""

    __array_ufunc__ = None  # so that `array + tensor` calls the tensor once, not for each element
    __slots__ = ()

    def backward(self, d: Any = None) -> None:
        """Add d(self)/d(leaf) to `.grad` of every leaf that requires it; `d` is the cotangent, 1 for a scalar.

        The graph stays unchanged: a second call adds the same gradients again.
        """
        backward(self, d)

    def reshape(self, *shape: int | tuple[int, ...]) -> Tensor:
        """Return the same elements in row-major order under another shape; one length may be -1."""
        lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        return _operator("reshape")(self, shape=tuple(lengths))

    def _constant(self, other: Any) -> Any:
        """Turn a Python number into a scalar of this tensor's dtype, so that float32 stays float32.

        A float keeps its own type if the tensor holds integers, so that nothing is truncated.
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


def _operator(name: str) -> Equation:
    """Return an operator's equation; importing `byhand.equations` fills the registry."""
    return registry[name]


def as_tensor(x: Any) -> Tensor:
    """Wrap an array, list or number in a tensor without gradient; pass tensors through."""
    return x if isinstance(x, Tensor) else Tensor(x)
