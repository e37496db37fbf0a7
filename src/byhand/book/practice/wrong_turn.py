"""A wrong turn: one thing forgotten or mixed up, as the array that then comes out; and what several of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class WrongTurn:
    """What goes wrong, and the array that then comes out instead of the (first) result."""

    en: str
    zh: str
    compute: Callable[..., Any]  # (inputs, **static) forward; (saved inputs, d, slot, **static) for a derivative


def softmax_of(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the softmax of x over an axis."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def masked(x: np.ndarray) -> np.ndarray:
    """Return scores (..., T, S) with -inf for keys that are not visible."""
    t, s = x.shape[-2:]
    return np.where(np.arange(s)[None, :] <= np.arange(s - t, s)[:, None], x, -np.inf)


def swapped(x: np.ndarray) -> np.ndarray:
    """Return x with its last two axes swapped."""
    return np.swapaxes(x, -1, -2)


def is_square(x: np.ndarray) -> bool:
    """Say whether the last two axes are equally long, so that a transposed x would go unnoticed."""
    return x.ndim >= 2 and x.shape[-1] == x.shape[-2]
