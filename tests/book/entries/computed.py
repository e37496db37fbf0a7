"""The results of an equation and its derivative on its entry's inputs, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from byhand.book.entries.contract import Entry
from byhand.book.numbers.closed_form import array, several
from byhand.engine import Composite, Tensor, registry


@dataclass(frozen=True)
class Computed:
    """What the equation itself makes of the inputs: float64 arrays in the shape of the contract."""

    results: tuple[np.ndarray, ...]
    gradients: dict[str, np.ndarray]


def compute(worked: Entry) -> Computed:
    """Run the equation and its derivative on the entry's inputs, in float64."""
    equation = registry[worked.stem]
    arrays = {name: array(numbers, name not in worked.gradients) for name, numbers in worked.inputs.items()}
    cotangents = tuple(array(numbers) for numbers in several(worked.d_result))
    if isinstance(equation, Composite):
        return _compute_composite(equation, arrays, cotangents[0], worked.static)
    result, saved = equation.forward(*arrays.values(), **worked.static)
    results = several(result)
    d_inputs = equation.vjp(saved, cotangents if len(results) > 1 else cotangents[0], **worked.static)
    gradients = {name: d for name, d in zip(arrays, d_inputs, strict=True) if d is not None}
    return Computed(results, gradients)


def _compute_composite(equation: Composite, arrays: dict[str, np.ndarray], d: np.ndarray, static: Any) -> Computed:
    leaf = partial(Tensor, requires_grad=True)
    tensors = {name: leaf(x) for name, x in arrays.items()}
    result = equation(*tensors.values(), **static)
    result.backward(d)
    return Computed((result.data,), {name: t.grad for name, t in tensors.items() if t.grad is not None})
