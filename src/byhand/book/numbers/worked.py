"""Worked numbers as arrays, as LaTeX, and as what the equation itself makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from byhand.book.entries.contract import Numbers, Worked
from byhand.book.numbers.closed_form import latex, value
from byhand.engine import Composite, Tensor, registry


@dataclass(frozen=True)
class Computed:
    """What the equation itself makes of the inputs: float64 arrays in the shape of the contract."""

    results: tuple[np.ndarray, ...]
    gradients: dict[str, np.ndarray]


def array(numbers: Numbers, integers: bool = False) -> np.ndarray:
    """Return nested closed forms as an array."""
    return np.asarray(each(value, numbers), dtype=np.int64 if integers else np.float64)


def each(function: Callable[[Any], Any], numbers: Numbers) -> Any:
    """Apply a function to every closed form of nested lists."""
    return [each(function, n) for n in numbers] if isinstance(numbers, list) else function(numbers)


def matrix(numbers: Numbers) -> str:
    r"""Return numbers as LaTeX: a matrix for nested lists (leading axes of length 1 dropped), or one number."""
    while isinstance(numbers, list) and len(numbers) == 1 and isinstance(numbers[0], list):
        numbers = numbers[0]
    if not isinstance(numbers, list):
        return latex(numbers)
    rows = numbers if isinstance(numbers[0], list) else [numbers]
    if isinstance(rows[0][0], list):
        return r",\; ".join(matrix(row) for row in rows)
    return r"\begin{bmatrix}" + r" \\ ".join(" & ".join(latex(n) for n in row) for row in rows) + r"\end{bmatrix}"


def several(numbers: Numbers) -> tuple[Numbers, ...]:
    """Return the results one by one, also where there is only one."""
    return numbers if isinstance(numbers, tuple) else (numbers,)


def compute(stem: str, worked: Worked) -> Computed:
    """Run the equation and its derivative on the worked inputs, in float64."""
    equation = registry[stem]
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
