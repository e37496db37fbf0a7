"""An answer: one number of a pass and the arithmetic behind it, as a tree of named numbers with their sources.

Values, gradients, updates and drawn tokens are answered in this one form, which has one JSON. Whatever shows a number
renders it and computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from byhand.engine import Term
from byhand.engine.terms import Index, addends, labelled, leaves, named

Origin = Mapping[str, Any]  # an array as JSON names it


def origin(name: str, gradient: bool = False) -> dict[str, Any]:
    """Return what JSON calls a tensor, or the gradient of one."""
    return {"name": name, "gradient": gradient}


def written(name: str, index: Index, gradient: bool = False) -> str:
    """Return an element as `explain` takes it: `logits[0,2,65]`, or `d logits[0,2,65]` for its gradient."""
    return f"{'d ' if gradient else ''}{named(name, index)}"


@dataclass(frozen=True)
class Element:
    """An element that a number was made from; `letter` is its tensor's symbol in the equation."""

    name: str
    index: Index
    value: float
    letter: str = ""
    gradient: bool = False

    @property
    def target(self) -> str:
        """The element as `explain` takes it."""
        return written(self.name, self.index, self.gradient)

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        place = {**origin(self.name, self.gradient), "index": list(self.index)}
        return {"target": self.target, **place, "letter": self.letter, "value": self.value}


@dataclass(frozen=True, slots=True)
class GradientUse:
    """One use of a tensor, and what it adds to the gradient of one of its elements.

    results  names of what the application made
    input    which of the equation's inputs the tensor is
    """

    results: tuple[str, ...]
    equation: str
    input: str
    value: float

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"results": list(self.results), "equation": self.equation, "input": self.input, "value": self.value}


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """One number and its arithmetic.

    name, index  the element; with `gradient` it is the derivative of the result with respect to the element
    value        the number, as it was computed
    equations    names of those that made it; of a gradient those that read the element
    term         its arithmetic; None for a parameter, an input, and the gradient of the result itself
    origins      what each number of a `source` in the tree means: an array by its name, or by who saved it
    uses         of a gradient: each is the part of the same place in the term
    beside       further labelled numbers that the arithmetic speaks of, but does not write out
    facts        a remark for programs, with a `code`: "parameter", "given", "loss", "zero", "cancelled", "update"
    difference   the central difference of a gradient, if it was asked for
    """

    name: str
    index: Index
    value: float
    gradient: bool = False
    equations: tuple[str, ...] = ()
    term: Term | None = None
    origins: tuple[Origin, ...] = ()
    uses: tuple[GradientUse, ...] = ()
    beside: tuple[Term, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    difference: float | None = None

    @property
    def target(self) -> str:
        """The element as `explain` takes it."""
        return written(self.name, self.index, self.gradient)

    @property
    def cancels(self) -> bool:
        """Whether only rounding is left of the addends."""
        return self.facts.get("code") == "cancelled"

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The addends of the arithmetic, largest first; a single one if it is no sum."""
        return tuple(sorted(addends_of(self.term, bool(self.uses)), key=lambda term: -abs(term.value)))

    @cached_property
    def labelled(self) -> tuple[Term, ...]:
        """The labelled parts of the arithmetic, the innermost first, and the numbers beside it."""
        return (*(labelled(self.term) if self.term else ()), *self.beside)

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The elements that the number was made from, those of the largest addends first."""
        found: dict[tuple[int, Index], Element] = {}
        read = [leaf for term in self.terms for leaf in leaves(term)]
        also = (leaf for term in self.beside for leaf in leaves(term) if leaf.source)
        for leaf in (*read, *sorted(also, key=lambda leaf: leaf.source or ())):
            if leaf.source is not None and leaf.source not in found and "name" in self.origins[leaf.source[0]]:
                which, place = leaf.source
                tensor, letter = self.origins[which], leaf.label.partition("[")[0]
                found[leaf.source] = Element(
                    tensor["name"], place, leaf.value, "" if "/" in letter else letter, tensor["gradient"]
                )
        return tuple(found.values())

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; numbers that are not finite are text, as JSON has none."""
        plain: dict[str, Any] = {
            "target": self.target,
            "name": self.name,
            "index": list(self.index),
            "gradient": self.gradient,
            "value": self.value,
            "equation": ", ".join(self.equations) or None,
            "terms": self.term.as_json(self.origins) if self.term else None,
            "inputs": [element.as_json() for element in self.elements],
        }
        if self.gradient:
            plain |= {"uses": [use.as_json() for use in self.uses], "central_difference": self.difference}
        if self.beside:
            plain["beside"] = [term.as_json(self.origins) for term in self.beside]
        if self.facts:
            plain["note"] = dict(self.facts)
        return finite(plain)


def addends_of(term: Term | None, each: bool = False) -> list[Term]:
    """Return the addends of a term; with `each` those of each of its parts."""
    if term is None:
        return []
    return [addend for part in term.parts for addend in addends(part)] if each else addends(term)


def finite(plain: Any) -> Any:
    """Return plain values with numbers that are not finite as text: "NaN", "Infinity", "-Infinity"."""
    match plain:
        case float() if not math.isfinite(plain):
            return "NaN" if math.isnan(plain) else "Infinity" if plain > 0 else "-Infinity"
        case dict():
            return {key: finite(value) for key, value in plain.items()}
        case list():
            return [finite(value) for value in plain]
        case _:
            return plain
