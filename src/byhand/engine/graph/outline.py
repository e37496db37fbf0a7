"""Outline: an abstract array (shape, dtype, storage, no elements), so that recording a graph computes nothing.

Equations find their functions through the array, so the same forward halves run on outlines. Common functions have
a shape rule; any other runs once on zeros. Functions of concrete arrays still compute: constants are folded. Inside
an equation even `arange` returns an outline, so the causal mask of a long window takes no memory.

Views alias their base's storage, as in NumPy, so a graph's memory can be counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.lib.stride_tricks import as_strided


class Allocation:
    """The storage that an array and its views share; an array from outside the graph counts as empty.

    live, most  bytes that all existing outlines' arrays would take, and their peak since `most` was set
    """

    __slots__ = ("nbytes",)
    live = most = 0

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        Allocation.live += nbytes
        Allocation.most = max(Allocation.most, Allocation.live)

    def __del__(self) -> None:
        # Through its class: at exit this module's names are gone. An interrupt may have prevented `nbytes`.
        type(self).live -= getattr(self, "nbytes", 0)


class Outline(NDArrayOperatorsMixin):
    """Shape, dtype and memory layout of an array. Its operators are NumPy's functions.

    inside   an input of the equation being recorded
    base     the array it views: another outline, or an array from outside
    strides  in elements; row-major if not given
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        inside: bool = False,
        base: Any = None,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.inside = inside
        self.strides = _row_major(self.shape) if strides is None else strides
        if base is None:
            self.storage = Allocation(self.size * self.dtype.itemsize)
        else:
            self.storage = base.storage if isinstance(base, Outline) else Allocation(0)

    @classmethod
    def of(cls, array: Any, inside: bool = False) -> Outline:
        """Return the outline of an array, or another one with the same storage."""
        return cls(array.shape, array.dtype, inside, array, array.strides if isinstance(array, Outline) else None)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> Outline:
        """The transposed array."""
        return _view(np.transpose, self)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return INSIDE if self.inside else FUNCTIONS

    def reshape(self, *shape: Any) -> Outline:
        """Return the elements under another shape, as a view if NumPy makes one; one length may be -1."""
        lengths = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        known = math.prod(n for n in lengths if n != -1)
        made = tuple(self.size // max(1, known) if n == -1 else n for n in lengths)
        if math.prod(made) != self.size:
            raise ValueError(f"cannot reshape {self.shape} into {lengths}")
        try:
            return _view(np.reshape, self, made, copy=False)
        except ValueError:  # NumPy copies
            return Outline(made, self.dtype)

    def __getitem__(self, index: Any) -> Outline:
        if isinstance(index, (np.ndarray, Outline)) and np.issubdtype(index.dtype, np.integer):
            return Outline((*index.shape, *self.shape[1:]), self.dtype)
        parts = index if isinstance(index, tuple) else (index,)
        if all(part is None or isinstance(part, (int, slice, type(...))) for part in parts):
            whole = parts if ... in parts else (*parts, ...)
            return _view(lambda x: x[whole], self)
        return Outline(_zeros(self)[index].shape, self.dtype)

    def __array_ufunc__(self, function: np.ufunc, method: str, *arrays: Any, **settings: Any) -> Any:
        return _call(function.__name__, function, *arrays, **settings)


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _view(function: Callable[..., Any], x: Outline, *arguments: Any, **settings: Any) -> Outline:
    """Apply a NumPy function that returns a view: it computes strides and reads no element."""
    size = x.dtype.itemsize
    stand_in = as_strided(np.empty(1, x.dtype), x.shape, [size * s for s in x.strides], writeable=False)
    made = function(stand_in, *arguments, **settings)
    return Outline(made.shape, x.dtype, base=x, strides=tuple(s // size for s in made.strides))


def _zeros(x: Any) -> Any:
    """Return zeros of the outline's shape, broadcast from one element."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape) if isinstance(x, Outline) else x


def _sample(x: Any) -> Any:
    """Return an element for type promotion; Python numbers pass through, since they are weakly typed."""
    return np.ones((), x.dtype) if hasattr(x, "dtype") else x


def _elementwise(function: Callable[..., Any], *arrays: Any) -> Outline:
    shape = np.broadcast_shapes(*(x.shape for x in arrays if hasattr(x, "shape")))
    return Outline(shape, function(*map(_sample, arrays)).dtype)


def _product(a: Any, b: Any) -> Outline:
    if a.ndim < 2 or b.ndim < 2:
        return _outline(np.matmul(_zeros(a), _zeros(b)))
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"cannot multiply {a.shape} with {b.shape}")
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return Outline((*shape, a.shape[-2], b.shape[-1]), np.result_type(a.dtype, b.dtype))


def _reduction(function: Callable[..., Any], x: Any, axis: Any = None, keepdims: bool = False) -> Outline:
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    gone = {a % x.ndim for a in axes}
    shape = [1 if i in gone else n for i, n in enumerate(x.shape) if keepdims or i not in gone]
    return Outline(tuple(shape), function(np.ones(1, x.dtype)).dtype)


def _outline(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return type(result)(map(_outline, result))
    return Outline(result.shape, result.dtype) if hasattr(result, "shape") else result


class Functions:
    """NumPy's functions on outlines; inside an equation, those that create arrays create outlines."""

    def __init__(self, inside: bool) -> None:
        self._inside = inside

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if name == "arange" and self._inside:
            return lambda *arguments, **settings: _outline(np.arange(*arguments, **settings))
        return partial(_call, name, value) if callable(value) and not isinstance(value, type) else value


FUNCTIONS, INSIDE = Functions(False), Functions(True)
REDUCTIONS = {"sum", "max", "min", "mean", "prod", "any", "all"}
VIEWS = {
    "permute_dims", "transpose", "matrix_transpose", "swapaxes", "moveaxis", "expand_dims", "squeeze", "broadcast_to",
}  # fmt: skip


def _call(name: str, function: Any, *arguments: Any, **settings: Any) -> Any:
    flat = [x for a in (*arguments, *settings.values()) for x in (a if isinstance(a, (tuple, list)) else (a,))]
    if not any(isinstance(x, Outline) for x in flat):
        return function(*arguments, **settings)
    if name == "matmul":
        return _product(*arguments)
    if (isinstance(function, np.ufunc) and function.nout == 1 and not settings) or name == "where":
        return _elementwise(function, *arguments, **settings)
    if name in REDUCTIONS and set(settings) <= {"axis", "keepdims"}:
        return _reduction(function, *arguments, **settings)
    if name in VIEWS:
        return _view(function, *arguments, **settings)
    if name == "reshape":
        return arguments[0].reshape(*arguments[1:], **settings)
    if name == "asarray" and not settings:
        return arguments[0]
    if name in ("zeros_like", "ones_like", "empty_like") and not settings:
        return Outline(arguments[0].shape, arguments[0].dtype)
    with np.errstate(all="ignore"):
        made = [[_zeros(x) for x in a] if isinstance(a, (tuple, list)) else _zeros(a) for a in arguments]
        return _outline(function(*made, **{key: _zeros(value) for key, value in settings.items()}))
