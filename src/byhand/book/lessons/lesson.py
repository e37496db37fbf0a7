"""A lesson: a computation as numbered steps that can be done on paper, in two languages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byhand.book.lessons.letters import label
from byhand.book.lessons.naming import squeezed
from byhand.book.numbers import arithmetic
from byhand.book.numbers.exact import Exact
from byhand.book.practice.edits import Mistake
from byhand.book.words.language import Said, Words
from byhand.engine.terms import Term, element, function, total

LONGEST_FORM = 24  # characters; longer fractions are no easier to read than a decimal
NamedArrays = tuple[tuple[Said, str], ...]  # names, and rows as text


@dataclass(frozen=True)
class Number:
    """One number to compute: its name, its arithmetic in numbers, its value, typical mistakes.

    letters  the arithmetic in letters; `begun` in numbers, its first operation done
    whole    whether the arithmetic shows every 1 and 0 that was read, as one number of each result does
    follow   computes the value from other earlier numbers, by label: a slip that the reader carried forward
    """

    label: Said
    expression: Said
    value: float
    exact: str = ""
    mistakes: tuple[Mistake, ...] = ()
    letters: str = ""
    begun: str = ""
    whole: bool = False
    digits: int = arithmetic.SHOWN
    follow: Callable[[Mapping[str, float]], float] | None = field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> str:
        """The value as printed: its exact form if it has one, else as many digits as its arithmetic gives."""
        return self.exact or arithmetic.decimal(self.value, self.digits)


@dataclass(frozen=True)
class Array:
    """An array of a step: its letter (LaTeX), its name in the code, its numbers.

    Settings, and arrays that the forward pass saved for the backward pass, have no name.
    """

    letter: str
    name: str
    data: np.ndarray = field(compare=False)

    @property
    def label(self) -> str:
        """The letter as in labels of numbers; the name if the letter has an index, as in m_{t-1}."""
        written = label(self.letter)
        return self.name if self.name and "[" in written else written


@dataclass(frozen=True)
class Step:
    """One equation applied, or its derivative: formula, place of the code, numbers, and whole results.

    latex      the formula of an equation in LaTeX, in the letters of the step
    goal, why  the step's purpose, and the reason for its form; `reason` the same in the equation's letters
    inputs     arrays that the step reads; `arrays` its results, `kept` its intermediate arrays
    origin     its source: a pass and an application, or gradients and a backward step or a tensor's name
    """

    title: Words
    formula: Said
    where: str
    numbers: tuple[Number, ...] = ()
    results: NamedArrays = ()
    latex: str = ""
    stem: str = ""
    is_derivative: bool = False
    goal: Words | None = None
    why: Words | None = None
    reason: Words | None = None
    inputs: tuple[Array, ...] = ()
    arrays: tuple[Array, ...] = ()
    kept: tuple[Array, ...] = ()
    origin: tuple[Any, Any] | None = field(default=None, compare=False, repr=False)


Content = tuple[Words, Iterable[Step], NamedArrays]  # of a lesson: introduction, steps, given arrays
Maker = Callable[[Any], np.ndarray]  # turns nested closed forms into an array
Working = Callable[..., Content]  # of a Maker, and of what is given, if readers may change it

LISTED: list[tuple[int, str, Words]] = []  # the worked examples: place, name, title


@dataclass(frozen=True)
class Lesson:
    """A worked example from beginning to end: the given arrays, the steps; `changes` of what is given."""

    name: str
    title: Words
    intro: Words
    steps: tuple[Step, ...]
    given: NamedArrays
    changes: tuple[str, ...] = ()


def number_text(x: Any, digits: int = arithmetic.SHOWN) -> str:
    """Write a number of an array: its form if it has one, else six digits."""
    return form(x) or arithmetic.decimal(float(x), digits)


def form(x: Any) -> str:
    """Write a number in its exact form if it has a short one, else ""."""
    text = str(x) if isinstance(x, Exact) and (x.form is not None or x.odds is not None) else ""
    return text if len(text) <= LONGEST_FORM else ""


def grid(x: Any) -> str:
    """Return an array as nested rows: `[[1, 1/2], [0, −1]]`."""
    return _rows(squeezed(x))


def rows_of(arrays: Iterable[Array]) -> NamedArrays:
    """Return arrays, but not single numbers, by letter as nested rows."""
    return tuple((array.label, grid(array.data)) for array in arrays if array.data.ndim)


def _rows(array: Any) -> str:
    if np.ndim(array) == 0:
        return number_text(array[()] if isinstance(array, np.ndarray) else array)
    return "[" + ", ".join(map(_rows, array)) + "]"


def factor(x: Any) -> str:
    """Write a number as a factor, in parentheses if it needs them."""
    text = number_text(x)
    return f"({text})" if " " in text or text.startswith("−") else text


def difference(label: str, a: Any, b: Any) -> Number:
    """Return a − b as a number to compute; exactly 0 for numbers that differ only by rounding."""
    pair, value = (np.asarray(a), np.asarray(b)), round(float(a) - float(b), 12)
    term = total((element(pair, 0, (), ""), function("negative", element(pair, 1, (), ""))))
    expression, digits = arithmetic.written(term, leaf_text(pair), value)
    return Number(label, expression, value, digits=digits)


def leaf_text(data: Sequence[Any]) -> Callable[[int], arithmetic.Leaf]:
    """Return the function that writes leaves of terms to a number of digits, in exact form if the inputs are exact."""
    exact = _is_exact(data)

    def with_digits(digits: int) -> arithmetic.Leaf:
        def leaf(term: Term) -> str:
            if term.source is not None:
                which, index = term.source
                return number_text(data[which][index], digits)
            return number_text(Exact.of(term.value), digits) if exact else arithmetic.decimal(term.value, digits)

        return leaf

    return with_digits


def _is_exact(data: Sequence[Any]) -> bool:
    return any(x.dtype.kind == "O" for x in data if hasattr(x, "dtype"))


def term_value(term: Term, data: Sequence[Any]) -> Any:
    """Return a term's value, exact if the inputs are exact."""
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


def listed(place: int, en: str, zh: str) -> Callable[[Working], Working]:
    """Return the decorator that lists `lesson` under its file's name: its place and title."""

    def register(lesson: Working) -> Working:
        name = lesson.__module__.rpartition(".")[2].replace("_", "-")
        LISTED.append((place, name, Words(en, zh)))
        return lesson

    return register
