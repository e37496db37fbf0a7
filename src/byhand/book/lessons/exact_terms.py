"""Terms of a lesson: how their leaves are written, and what they are worth exactly."""

from __future__ import annotations

import math
from typing import Any

from byhand.book.lessons.lesson import number_text
from byhand.book.numbers import arithmetic
from byhand.book.numbers.exact import Exact
from byhand.engine.terms import Term


def leaf_text(data: tuple[Any, ...]) -> arithmetic.Leaf:
    """Return how to write a leaf of a term: as the input's number, in its exact form where arrays hold forms."""
    exact = any(x.dtype.kind == "O" for x in data if hasattr(x, "dtype"))

    def leaf(term: Term) -> str:
        if term.source is not None:
            which, index = term.source
            return number_text(data[which][index])
        return number_text(Exact.of(term.value)) if exact else arithmetic.decimal(term.value)

    return leaf


def term_value(term: Term, data: tuple[Any, ...]) -> Any:
    """Return a term's value, worked exactly where the inputs are exact."""
    if not any(x.dtype.kind == "O" for x in data if hasattr(x, "dtype")):
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
        case "exp" | "log" | "sqrt" | "tanh":
            return getattr(parts[0], term.op)()
        case _:
            return Exact(term.value)
