"""Names and indices as a lesson writes them: without the number of the only block and the index of the only sequence.

An array (1, 1, 3, 3) of scores has the elements `attn.scores[0,0]` to `attn.scores[2,2]`: labels and shown arrays
leave out leading axes of length 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.engine.terms import Index, element_name
from byhand.model import BLOCKS


def short(name: str) -> str:
    """Return a tensor's name without the number of the only block: `attn.scores` for `blocks.0.attn.scores`."""
    return name.replace(f"{BLOCKS}.0.", "")


def leading(shape: tuple[int, ...]) -> int:
    """Return how many leading axes have length 1; the last axis never counts."""
    return next((k for k, n in enumerate(shape[:-1]) if n != 1), max(len(shape) - 1, 0))


def place(name: str, index: Index, shape: tuple[int, ...]) -> str:
    """Return an element's label, or that of the row that the first indices select."""
    return element_name(short(name), index[leading(shape) :])


def squeezed(array: Any) -> np.ndarray:
    """Return an array without leading axes of length 1."""
    data = np.asarray(array)
    return data.reshape(data.shape[leading(data.shape) :])
