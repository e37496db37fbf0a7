"""Worked numbers as arrays and as LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byhand.book.entries.contract import Numbers
from byhand.book.numbers.closed_form import latex, value


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
