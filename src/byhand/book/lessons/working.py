"""A step's numbers from their terms: in numbers that give the printed value, the first of each kind in letters too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byhand.book.lessons.formulas import StepFormula
from byhand.book.lessons.lesson import Number, form, leaf_text, term_value
from byhand.book.lessons.naming import place
from byhand.book.numbers import arithmetic
from byhand.book.practice.edits import Asked, Mistake, Slips, mistakes
from byhand.engine.terms import Index, Term, labelled, leaves

TINY = 1e-4  # a smaller number hardly shows its arithmetic
SMALL = 4  # numbers of a result that are all written out in full


@dataclass(frozen=True)
class Working:
    """Writes the arithmetic of a result's elements.

    shape    of the result
    data     arrays that the terms' leaves were read from; `labels` their labels in the step, or ""
    formula  of the step
    """

    shape: tuple[int, ...]
    data: Sequence[Any]
    labels: Sequence[str]
    formula: StepFormula

    def number(
        self,
        label: str,
        term: Term,
        index: Index,
        value: float,
        exact: str,
        wrong: Iterable[Mistake],
        *,
        whole: bool = False,
        full: bool = False,
    ) -> Number:
        """Return a number with its arithmetic; `full` keeps the 1s and 0s that were read, `whole` has letters too."""
        simple, leaf = arithmetic.simplified(term, whole or full), leaf_text(self.data)
        numbers, digits = arithmetic.written(simple, leaf, value)
        plain, begun = (arithmetic.expression(t, leaf(arithmetic.SHOWN)) for t in (simple, arithmetic.begun(simple)))
        return Number(
            label,
            numbers,
            value,
            exact,
            tuple(wrong),
            arithmetic.expression(arithmetic.simplified(term, True), self._letter(index)),
            "" if begun == plain else begun,  # −3 is printed as it was before the sign was taken
            whole,
            digits,
            self._follow(term, index),
        )

    def defined(self, term: Term, index: Index, seen: set[Any], slips: Mapping[str, Slips]) -> Iterator[Number]:
        """Yield the labelled parts of a term that are not in `seen`, each with its element or row.

        The first of each name is whole.
        """
        for part in labelled(term):
            key = (part.label, tuple((leaf.source, leaf.value) for leaf in leaves(part)))
            if key in seen or part.op == "max":
                continue
            seen.add(key)
            name, bracket, _ = part.label.partition("[")
            wrong = mistakes(slips.get(name, ()) if bracket or part.op == "ratio" else (), part, Asked())
            exact = form(term_value(part, self.data))
            yield self.number(self._label(part, index), part, index, part.value, exact, wrong, whole=name not in seen)
            seen.add(name)

    def _label(self, part: Term, index: Index) -> str:
        """Return a labelled part's name with the element, or the row, that it belongs to."""
        name, bracket, inside = part.label.partition("[")
        name = self.formula.in_label(name)
        if not bracket:
            name = f"({name})" if name.startswith("Σ") else name
            return place(name, index[: len(index) - part.common_axes], self.shape)
        row = tuple(map(int, inside.removesuffix("]").split(",")))  # of each row of the first input: loss[0,2]
        return place(name, row, self.data[0].shape[: len(row)])

    def _letter(self, index: Index) -> arithmetic.Leaf:
        """Return the function that writes a leaf by its letter and index: `Q[0,1]`."""

        def leaf(term: Term) -> str:
            if term.source is None:
                if "/" in term.label:  # a slope without arithmetic of its own
                    return arithmetic.number(term)
                return (
                    self._label(term, index) if "[" in term.label else self.formula.in_label(arithmetic.letter(term))
                )
            which, at = term.source
            shape = self.data[which].shape
            if name := self.labels[which]:
                return place(name, at, shape)
            if len(shape) > 1 and shape[-1] == 1:  # one number for each row: rstd[0]
                shape, at = shape[:-1], at[:-1]
            return place(self.formula.in_label(term.label.partition("[")[0]), at, shape)

        return leaf

    def _follow(self, term: Term, index: Index) -> Callable[[Mapping[str, float]], float]:
        """Return the function that computes a term from other numbers of inputs and labelled parts, by label."""

        def value(numbers: Mapping[str, float]) -> float:
            def given(part: Term) -> float | None:
                if part.source is None:
                    return numbers.get(self._label(part, index)) if part.parts else None
                which, at = part.source
                return numbers.get(place(self.labels[which], at, self.data[which].shape))

            return arithmetic.reworked(term, given)

        return value


Element = tuple[Number, Term, Index]


def with_one_whole(parts: Iterable[Number | Element], working: Working) -> Iterator[Number]:
    """Yield the numbers of a result: the first that takes arithmetic whole; of a SMALL one the first, all in full."""
    parts = list(parts)
    elements = [part for part in parts if isinstance(part, tuple)]
    found = elements if len(elements) > SMALL else ()
    first = next(filter(_takes_arithmetic, found), None) or next(filter(_value, found), *elements[:1])
    for part in parts:
        if isinstance(part, Number):
            yield part
        elif part is not first and len(elements) > SMALL:
            yield part[0]
        else:
            number, term, index = part
            whole, label = part is first, str(number.label)
            yield working.number(
                label, term, index, number.value, number.exact, number.mistakes, whole=whole, full=True
            )


def _value(element: Element) -> float:
    return element[0].value


def _takes_arithmetic(element: Element) -> bool:
    """Return whether an element is neither 0 nor a copy of a number."""
    return bool(element[0].value) and element[0].expression != element[0].shown
