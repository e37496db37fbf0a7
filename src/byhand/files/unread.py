"""A verified array that stays in its file until its numbers are needed; shape and type are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from byhand.files.weights import own_pages


class Unread:
    """An array in a file, which `numpy.asarray` reads each time; nothing else computes with it.

    fill  (memory, element): fills contiguous memory of the dtype with the elements from index `element` on; raises
          a ByhandError if the file has changed
    """

    def __init__(self, shape: tuple[int, ...], dtype: str, fill: Callable[[np.ndarray, int], None]) -> None:
        self.shape, self.dtype, self._fill = shape, np.dtype(dtype), fill

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def into(self, place: np.ndarray, first: int = 0) -> None:
        """Fill contiguous memory of this dtype with the rows from `first` on; threads may read at the same time."""
        self._fill(place, first * math.prod(self.shape[1:]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = own_pages(self.size * self.dtype.itemsize).view(self.dtype).reshape(self.shape)
        self.into(found)
        return found if dtype is None else found.astype(dtype, copy=False)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return np  # so that a variable holds it as it is


def read(model: Any) -> Any:
    """Return the model itself, after reading the arrays that are still in a file."""
    for parameter in model.parameters().values():
        if isinstance(parameter.data, Unread):
            parameter.data = np.asarray(parameter.data)
    return model
