"""A lesson: a computation as numbered steps that can be done on paper, in two languages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byhand.book.lessons.naming import squeezed
from byhand.book.numbers import arithmetic
from byhand.book.numbers.exact import Exact
from byhand.book.practice.edits import Mistake
from byhand.book.words.language import Said, Words
from byhand.engine.terms import Term

LONGEST_FORM = 24  # characters; longer fractions are no easier to read than a decimal
NamedArrays = tuple[tuple[Said, str], ...]  # names, and rows as text


@dataclass(frozen=True)
class Number:
    """One number to work out: its name, its arithmetic in numbers, its value, typical mistakes.

    `follow` works the value from other earlier numbers, by label: a slip that the reader carried on.
    """

    label: Said
    expression: Said
    value: float
    exact: str = ""
    mistakes: tuple[Mistake, ...] = ()
    letters: str = ""
    follow: Callable[[Mapping[str, float]], float] | None = field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> str:
        """The value as printed: its exact form if it has one, else six digits."""
        return self.exact or arithmetic.decimal(self.value)


@dataclass(frozen=True)
class Array:
    """An array of a step: its letter in the formula (LaTeX), its name in the lesson, its numbers.

    Arrays that the forward pass saved for the backward pass have no name.
    """

    letter: str
    name: str
    data: np.ndarray = field(compare=False)


@dataclass(frozen=True)
class Step:
    """One equation applied, or its derivative: formula, place of the code, numbers, and whole results.

    goal, why  the step's purpose, and the reason for its form
    inputs     arrays that the step reads; `arrays` its results, `kept` its intermediate arrays
    origin     what it was made from: a pass and an application, or the way back and its step or a tensor's name
    """

    title: Words
    formula: Said
    where: str
    numbers: tuple[Number, ...] = ()
    results: NamedArrays = ()
    stem: str = ""
    is_derivative: bool = False
    goal: Words | None = None
    why: Words | None = None
    inputs: tuple[Array, ...] = ()
    arrays: tuple[Array, ...] = ()
    kept: tuple[Array, ...] = ()
    origin: tuple[Any, Any] | None = field(default=None, compare=False, repr=False)


Content = tuple[Words, Iterable[Step], NamedArrays]  # of a lesson: introduction, steps, given arrays


@dataclass(frozen=True)
class Lesson:
    """A worked example from beginning to end: the given arrays, and the steps."""

    name: str
    title: Words
    intro: Words
    steps: tuple[Step, ...]
    given: NamedArrays


def number_text(x: Any) -> str:
    """Write a number of an array: its form if it has one, else six digits."""
    return form(x) or arithmetic.decimal(float(x))


def form(x: Any) -> str:
    """Write a number in its exact form if it has a short one, else ""."""
    text = str(x) if isinstance(x, Exact) and (x.form is not None or x.odds is not None) else ""
    return text if len(text) <= LONGEST_FORM else ""


def grid(x: Any) -> str:
    """Return an array as nested rows: `[[1, 1/2], [0, −1]]`."""
    return _rows(squeezed(x))


def rows_of(arrays: Iterable[Array]) -> NamedArrays:
    """Return arrays, but not single numbers, by name as nested rows."""
    return tuple((array.name, grid(array.data)) for array in arrays if array.data.ndim)


def _rows(array: Any) -> str:
    if np.ndim(array) == 0:
        return number_text(array[()] if isinstance(array, np.ndarray) else array)
    return "[" + ", ".join(map(_rows, array)) + "]"


def factor(x: Any) -> str:
    """Write a number as a factor, in parentheses if it needs them."""
    text = number_text(x)
    return f"({text})" if " " in text or text.startswith("−") else text


def difference(label: str, a: Any, b: Any) -> Number:
    """Return a − b as a number to work out; exactly 0 for numbers that differ by rounding only."""
    return Number(label, f"{number_text(a)} − {factor(b)}", round(float(a) - float(b), 12))


def leaf_text(data: tuple[Any, ...]) -> arithmetic.Leaf:
    """Return the function that writes a leaf of a term as a number, in its exact form if the inputs are exact."""
    exact = _is_exact(data)

    def leaf(term: Term) -> str:
        if term.source is not None:
            which, index = term.source
            return number_text(data[which][index])
        return number_text(Exact.of(term.value)) if exact else arithmetic.decimal(term.value)

    return leaf


def _is_exact(data: tuple[Any, ...]) -> bool:
    return any(x.dtype.kind == "O" for x in data if hasattr(x, "dtype"))


def term_value(term: Term, data: tuple[Any, ...]) -> Any:
    """Return a term's value, worked exactly if the inputs are exact."""
    if not _is_exact(data):
        return term.value
    if term.source is not None:
        return Exact.of(data[term.source[0]][term.source[1]])
    if not term.parts:
        return Exact.of(term.value)
    parts = [term_value(part, data) for part in term.parts]
    match term.op:
        case "sum":
            return sum(parts, Exact.fraction(0))
        case "product":
            return math.prod(parts, start=Exact.fraction(1))
        case "ratio":
            return parts[0] / parts[1]
        case "negative":
            return -parts[0]
        case "square":
            return parts[0] * parts[0]
        case "max":
            return max(parts)
        case "exp" | "log" | "sqrt" | "tanh" | "erf":
            return getattr(parts[0], term.op)()
        case _:
            return Exact(term.value)
