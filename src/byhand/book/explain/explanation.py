"""An explanation: an answer in the book's words, with explanations of the numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

from byhand.book.finding.equations import of_equations
from byhand.book.finding.finding import Finding
from byhand.book.numbers import arithmetic
from byhand.book.words.language import Note, Words
from byhand.engine.terms import Term
from byhand.tracing.answers import Answer, finite
from byhand.tracing.elements import Element
from byhand.tracing.html import table

BEFORE = Words(" before", "（更新前）")  # suffix of the moments that the update reads
SHOWN = 16  # terms, in a notebook
IN_LETTERS = {"|n|": "√Σn²", "O": "orthogonalise(n)"}  # of numbers that Muon's arithmetic only names


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(Answer):
    """An answer with words.

    note      a remark, such as why it is zero
    sources   the elements it was made from, each explainable in turn, in the order in which the book shows them
    children  explanations of the sources, to the requested depth
    """

    note: Note | None = None
    sources: Sequence[Element] = ()
    children: tuple[Explanation, ...] = ()

    @classmethod
    def of(cls, answer: Answer, note: Note | None, sources: Sequence[Element]) -> Self:
        """Return an answer with the book's words."""
        facts = {field.name: getattr(answer, field.name) for field in fields(Answer)}
        return cls(**facts, note=note, sources=sources)

    @property
    def inputs(self) -> Sequence[Element]:
        """The sources."""
        return self.sources

    @property
    def known(self) -> list[Finding]:
        """The book's findings about its equations."""
        return [of_equations()[name] for name in self.equations]

    @property
    def where(self) -> str:
        """The places of the forwards, or of the derivatives of a gradient."""
        return ", ".join(str(e.derivative if self.gradient else e.forward) for e in self.known)

    @property
    def expression(self) -> str:
        """The whole arithmetic on one line."""
        return arithmetic.expression(self.term) if self.term else ""

    @cached_property
    def definitions(self) -> tuple[arithmetic.Definition, ...]:
        """The labelled parts of the arithmetic, each on a line."""
        return tuple(map(_defined, self.labelled))

    def _repr_html_(self) -> str:
        shown = self.terms[:SHOWN]
        rows = [(arithmetic.expression(term), float(term.value)) for term in shown]
        if rest := len(self.terms) - len(shown):
            rows.append((f"{rest} smaller ones", self.rest(SHOWN)))
        value = f"{self.target} = {arithmetic.decimal(float(self.value))}"
        return table(value, ("terms of the sum" if len(rows) > 1 else "arithmetic", "value"), rows, self.where)

    def as_json(self, most: int | None = None) -> dict[str, Any]:
        """Return plain values, ready for JSON: those of the answer, with formulas, places and words."""
        plain = super().as_json(most) | {
            "formula": "\n".join((e.derivative_formula if self.gradient else e.formula).en for e in self.known),
            "latex": r" \quad ".join(e.latex_derivative if self.gradient else e.latex for e in self.known),
            "where": self.where,
            "expression": self.expression,
            "definitions": [
                {"label": d.label, "expression": d.expression, "value": finite(d.term.value)}
                for d in self.definitions
            ],
        }
        if self.note:
            plain["note"] = self.note.as_json()
        if self.children:
            plain["children"] = [child.as_json(most) for child in self.children]
        return plain


def _defined(part: Term) -> arithmetic.Definition:
    """Return a labelled part with its arithmetic on a line."""
    name, bracket, index = part.label.partition("[")
    if name in IN_LETTERS and not part.parts:
        return arithmetic.Definition(part.label, IN_LETTERS[name] + bracket + index, part)
    numbers = arithmetic.expression(part)
    if name == "g" and part.parts:  # the gradient, clipped
        return arithmetic.Definition(name, f"{arithmetic.expression(part, arithmetic.letter)} = {numbers}", part)
    return arithmetic.Definition(part.label, numbers, part)
