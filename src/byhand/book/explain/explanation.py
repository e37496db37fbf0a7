"""An explanation: one value of a model, the arithmetic behind it, and the elements it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from byhand.book.finding.finding import Finding
from byhand.book.finding.index import listings
from byhand.book.numbers import arithmetic
from byhand.book.words.language import Note, Words
from byhand.engine.terms import Index, Term
from byhand.tracing.gradients import GradientTerms, origin

BEFORE = Words(" before", "（更新前）")  # suffix of the moments that the update reads


@dataclass(frozen=True)
class Source:
    """An element that a value was made from; `letter` is its tensor's symbol in the equation."""

    name: str
    index: Index
    value: float
    letter: str = ""
    grad: bool = False

    @property
    def target(self) -> str:
        """The element as `explain` takes it."""
        return arithmetic.written(self.name, self.index, self.grad)

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        place = {**origin(self.name, self.grad), "index": list(self.index)}
        return {"target": self.target, **place, "letter": self.letter, "value": self.value}


@dataclass(frozen=True)
class Explanation:
    """One value and the arithmetic behind it.

    equations   that made it; for a gradient, those that read the element
    term        the whole arithmetic as a tree; `origins` describes its inputs in JSON
    uses        returns, for a gradient, the derivative's own arithmetic in each use of the tensor
    terms       the addends, largest first; a single one if the equation is no sum
    definitions labelled parts of the tree, each on a line
    sources     the elements it was made from, each explainable in turn
    children    explanations of the sources, to the requested depth
    difference  the central difference of a gradient
    note        a remark, such as why it is zero
    cancels     whether only rounding is left of the terms
    """

    name: str
    index: Index
    value: float
    grad: bool = False
    equations: tuple[str, ...] = ()
    term: Term | None = None
    origins: tuple[Mapping[str, Any], ...] = ()
    uses: Callable[[], Sequence[GradientTerms]] = field(default=tuple, compare=False, repr=False)
    definitions: tuple[arithmetic.Definition, ...] = ()
    terms: tuple[Term, ...] = ()
    sources: tuple[Source, ...] = ()
    children: tuple[Explanation, ...] = ()
    difference: float | None = None
    note: Note | None = None
    cancels: bool = False

    @property
    def target(self) -> str:
        """The element as `explain` takes it."""
        return arithmetic.written(self.name, self.index, self.grad)

    @property
    def known(self) -> list[Finding]:
        """The book's findings about its equations."""
        return [listings()[name] for name in self.equations]

    @property
    def where(self) -> str:
        """The places of the forwards, or of the derivatives of a gradient."""
        return ", ".join(str(e.derivative if self.grad else e.forward) for e in self.known)

    @property
    def expression(self) -> str:
        """The whole arithmetic on one line."""
        return arithmetic.expression(self.term) if self.term else ""

    def as_json(self, derivative: bool = True) -> dict[str, Any]:
        """Return plain values, ready for JSON; with the derivative's own arithmetic, of the asked element alone."""
        plain: dict[str, Any] = {
            "target": self.target,
            "name": self.name,
            "index": list(self.index),
            "gradient": self.grad,
            "value": self.value,
            "equation": ", ".join(self.equations),
            "formula": "\n".join(e.plain_derivative if self.grad else e.plain for e in self.known),
            "latex": r" \quad ".join(e.latex_derivative if self.grad else e.latex for e in self.known),
            "where": self.where,
            "expression": self.expression,
            "definitions": [
                {"label": d.label, "expression": d.expression, "value": d.term.value} for d in self.definitions
            ],
            "terms": self.term.as_json(self.origins) if self.term else None,
            "sum_of_terms": self.term.value if self.term else None,
            "inputs": [source.as_json() for source in self.sources],
        }
        if self.grad:
            plain["central_difference"] = self.difference
            if derivative:
                plain["derivative"] = [use.as_json() for use in self.uses()]
        if self.note:
            plain["note"] = self.note.as_json()
        if self.children:
            plain["children"] = [child.as_json(derivative=False) for child in self.children]
        return plain
