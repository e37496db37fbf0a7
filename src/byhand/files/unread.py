"""An array that stays in its file, verified, until its numbers are asked for; shape and type are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


class Unread:
    """What NumPy makes an array of, reading it each time (`numpy.asarray`); nothing else computes with it.

    read  gives the array; raises a ByhandError if the file is not what it was
    """

    def __init__(self, shape: tuple[int, ...], dtype: str, read: Callable[[], np.ndarray]) -> None:
        self.shape, self.dtype, self.read = shape, np.dtype(dtype), read

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.read()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return np  # so that a variable holds it as it is


def read(model: Any) -> Any:
    """Return the model itself, with the arrays that are still in a file read."""
    for parameter in model.parameters().values():
        if isinstance(parameter.data, Unread):
            parameter.data = np.asarray(parameter.data)
    return model
