"""An answer: one number of a pass and its arithmetic, as a tree of named numbers with their sources.

Values, gradients, updates and drawn tokens share this form and its JSON. Whatever shows a number renders an answer
and computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from byhand.engine import Term
from byhand.engine.rows import joined, outlines, ranked, values
from byhand.engine.terms import LARGEST, Index, addends, is_whole, labelled, leaves
from byhand.tracing.elements import Element, Elements, Origin, answer_name, counted, read_from


@dataclass(frozen=True, slots=True)
class GradientTerms:
    """The contribution of one use of a tensor to the gradient of one of its elements, as arithmetic.

    results          names of the application's results
    equation, input  the equation, and its input that is the tensor
    origins          for each number of a `source` in the term, its array in JSON: a tensor or its gradient by name,
                     or array number `saved` of the application `saved_by`
    arrays           the same arrays
    """

    results: tuple[str, ...]
    equation: str
    input: str
    term: Term
    origins: tuple[Origin, ...]
    arrays: tuple[Any, ...] = field(compare=False, repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, without the arithmetic."""
        named = {"results": list(self.results), "equation": self.equation, "input": self.input}
        return {**named, "value": self.term.value}


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """One number and its arithmetic.

    name, index  the element; with `gradient`, the number is the result's derivative with respect to it
    value        the number, as computed
    equations    names of those that made it; for a gradient, of those that read the element
    term         its arithmetic; None for a parameter, an input, and the gradient of the result itself
    origins      the array of each `source` number in the tree: by name, or by the application that saved it
    arrays       the same arrays
    uses         of a gradient, in the order of the term's parts
    beside       further labelled numbers that the arithmetic mentions but does not write out
    facts        a remark for programs, with a `code`: "parameter", "given", "loss", "zero", "cancelled", "update"
    difference   the central difference of a gradient, if requested
    """

    name: str
    index: Index
    value: float
    gradient: bool = False
    equations: tuple[str, ...] = ()
    term: Term | None = None
    origins: tuple[Origin, ...] = ()
    arrays: tuple[Any, ...] = ()
    uses: tuple[GradientTerms, ...] = ()
    beside: tuple[Term, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    difference: float | None = None

    @property
    def target(self) -> str:
        """The element in `explain`'s notation."""
        return answer_name(self.name, self.index, self.gradient)

    @property
    def cancels(self) -> bool:
        """Whether the addends cancel up to rounding."""
        return self.facts.get("code") == "cancelled"

    @cached_property
    def addends(self) -> Sequence[Term]:
        """The addends of the arithmetic, for a gradient those of each use; a single one if it is not a sum."""
        return addends_of(self.term, bool(self.uses))

    @cached_property
    def terms(self) -> Sequence[Term]:
        """The addends, largest first, made on demand if there are many."""
        return ranked(self.addends)

    def rest(self, shown: int) -> float:
        """Return the sum of the addends after the largest ones."""
        left = values(self.terms[shown:])
        return float(sum(left if isinstance(left, list) else left.tolist()))

    @cached_property
    def labelled(self) -> tuple[Term, ...]:
        """The labelled parts of the arithmetic, innermost first, and the numbers beside it."""
        return (*(labelled(self.term) if self.term else ()), *self.beside)

    @cached_property
    def elements(self) -> Sequence[Element]:
        """The elements that the number was computed from, those of the largest addends first."""
        read = read_from(chain(_leaves(self.terms), self._beside), self.origins)
        return Elements(read, lambda: counted(self.outlines))

    @property
    def outlines(self) -> list[Term]:
        """The leaves of the arithmetic, but one outline for each long row."""
        parts = self.terms if isinstance(self.addends, tuple) else outlines(self.addends)
        found = chain.from_iterable(leaves(part, outlines) for part in parts)
        return [leaf for leaf in (*found, *self._beside) if leaf.source and "name" in self.origins[leaf.source[0]]]

    @property
    def _beside(self) -> list[Term]:
        read = (leaf for leaf in _leaves(self.beside) if leaf.source)
        return sorted(read, key=lambda leaf: leaf.source or ())

    @property
    def inputs(self) -> Sequence[Element]:
        """The elements in JSON's order."""
        return self.elements

    def as_json(self, most: int | None = None) -> dict[str, Any]:
        """Return plain values, ready for JSON; non-finite numbers become text, since JSON has none.

        most  parts of each sum that are written; all, unless the arithmetic is very long (`Term.as_json`). Then only
              so many inputs are listed, and `rest_of_inputs` counts the others.
        """
        whole = self.term is None or (is_whole(self.term) and most is None)
        inputs = self.inputs if whole else self.inputs[: most or LARGEST]
        plain: dict[str, Any] = {
            "target": self.target,
            "name": self.name,
            "index": list(self.index),
            "gradient": self.gradient,
            "value": self.value,
            "equation": ", ".join(self.equations) or None,
            "terms": self.term.as_json(self.origins, most) if self.term else None,
            "inputs": [element.as_json() for element in inputs],
        }
        if len(inputs) < len(self.inputs):
            plain["rest_of_inputs"] = len(self.inputs) - len(inputs)
        if self.gradient:
            plain |= {"uses": [use.as_json() for use in self.uses], "central_difference": self.difference}
        if self.beside:
            plain["beside"] = [term.as_json(self.origins, most) for term in self.beside]
        if self.facts:
            plain["note"] = dict(self.facts)
        return finite(plain)


def addends_of(term: Term | None, each: bool = False) -> Sequence[Term]:
    """Return the addends of a term; with `each` those of each of its parts."""
    if term is None:
        return ()
    return joined(*map(addends, term.parts)) if each else addends(term)


def _leaves(terms: Iterable[Term]) -> Iterator[Term]:
    return chain.from_iterable(map(leaves, terms))


def finite(plain: Any) -> Any:
    """Return plain values with non-finite numbers as text: "NaN", "Infinity", "-Infinity"."""
    match plain:
        case float() if not math.isfinite(plain):
            return "NaN" if math.isnan(plain) else "Infinity" if plain > 0 else "-Infinity"
        case dict():
            return {key: finite(value) for key, value in plain.items()}
        case list() | tuple():
            return [finite(value) for value in plain]
        case _:
            return plain
