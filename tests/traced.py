"""Arrays whose values cannot be read, as under a tracing compiler: a branch on one of them is an error."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


class Traced:
    """An array that computes and has a shape, but is no truth value and no number."""

    def __init__(self, array: Any) -> None:
        self._array = np.asarray(array)

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)

    def __array_namespace__(self) -> Space:
        return Space()

    def __getitem__(self, index: Any) -> Traced:
        return Traced(self._array[index])

    def __bool__(self) -> bool:
        raise TypeError("a value was read while tracing")

    __float__ = __int__ = __index__ = __len__ = __array__ = __bool__


def _operator(name: str, swapped: bool) -> Any:
    apply = getattr(operator, name)

    def method(self: Traced, other: Any) -> Traced:
        pair = (self, other)[:: -1 if swapped else 1]
        return Traced(apply(*map(plain, pair)))

    return method


for _name in ("add", "sub", "mul", "truediv", "pow", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Traced, f"__{_name}__", _operator(_name, swapped=False))
    setattr(Traced, f"__r{_name}__", _operator(_name, swapped=True))


class Space:
    """NumPy's functions on traced arrays."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if name.startswith("__"):
            return function
        return lambda *arguments, **settings: Traced(function(*map(plain, arguments), **settings))


def plain(value: Any) -> Any:
    """Return the array that was traced, also within a list."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value._array if isinstance(value, Traced) else value
