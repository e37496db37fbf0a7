"""An explanation: one value of a model, the arithmetic behind it, and the elements it came from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from byhand.book.lessons.lesson import Words
from byhand.book.numbers import arithmetic
from byhand.engine.terms import Index
from byhand.errors import ByhandError


class ExplainError(ByhandError, LookupError):
    """There is no such tensor or element, or it has no gradient."""


@dataclass(frozen=True)
class Part:
    """One term of the sum that makes a value: its arithmetic and what it adds."""

    expression: str
    value: float


@dataclass(frozen=True)
class Source:
    """An element that a value was made from; `letter` is what the equation calls its tensor."""

    name: str
    index: Index
    value: float
    letter: str = ""
    grad: bool = False

    @property
    def target(self) -> str:
        """The element as `explain` takes it."""
        return written(self.name, self.index, self.grad)


@dataclass(frozen=True)
class Explanation:
    """One value and the arithmetic behind it.

    terms       what adds up to the value, largest first; a single one where the equation is no sum
    expression  the whole arithmetic on one line, and `definitions` of its labelled parts
    sources     the elements it was made from, each explainable in turn
    children    their explanations, as deep as was asked
    difference  the central difference beside a gradient
    note        what else there is to say, such as why it is zero
    cancels     whether the terms leave nothing but rounding
    """

    name: str
    index: Index
    value: float
    grad: bool = False
    equation: str = ""
    formula: str = ""
    latex: str = ""
    where: str = ""
    expression: str = ""
    definitions: tuple[arithmetic.Line, ...] = ()
    terms: tuple[Part, ...] = ()
    total: float = math.nan
    sources: tuple[Source, ...] = ()
    children: tuple[Explanation, ...] = ()
    difference: float | None = None
    note: Words | None = None
    cancels: bool = False
    scale: float = field(default=0.0, repr=False)

    @property
    def target(self) -> str:
        """The element as `explain` takes it."""
        return written(self.name, self.index, self.grad)

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        plain: dict[str, Any] = {
            "target": self.target,
            "value": self.value,
            "equation": self.equation,
            "formula": self.formula,
            "latex": self.latex,
            "where": self.where,
            "expression": self.expression,
            "definitions": [
                {"label": d.label, "expression": d.expression, "value": d.term.value} for d in self.definitions
            ],
            "terms": [{"expression": t.expression, "value": t.value} for t in self.terms],
            "sum_of_terms": None if math.isnan(self.total) else self.total,
            "inputs": [{"target": s.target, "letter": s.letter, "value": s.value} for s in self.sources],
        }
        if self.grad:
            plain["central_difference"] = self.difference
        if self.note:
            plain["note"] = self.note.en
        if self.children:
            plain["children"] = [child.as_json() for child in self.children]
        return plain


def written(name: str, index: Index, grad: bool = False) -> str:
    """Return an element as it is asked for: `logits[0,2,65]`, or with a d before it for its gradient."""
    place = f"[{','.join(map(str, index))}]" if index else ""
    return f"{'d ' if grad else ''}{name}{place}"
