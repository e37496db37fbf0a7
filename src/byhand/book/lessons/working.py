"""Numbers of a step from their terms: in letters, in numbers that give what is printed, and one of them whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byhand.book.lessons.formulas import StepFormula
from byhand.book.lessons.lesson import Number, form, leaf_text, term_value
from byhand.book.lessons.naming import place
from byhand.book.numbers import arithmetic
from byhand.book.practice.edits import Asked, Mistake, Slips, mistakes
from byhand.engine.terms import Index, Term, addends, labelled, leaves

TINY = 1e-4  # a smaller number hardly shows its arithmetic


@dataclass(frozen=True)
class Working:
    """What the elements of a result are worked from.

    shape    of the result
    data     arrays that the terms' leaves were read from; `labels` theirs in the step, "" for one without
    formula  of the step
    """

    shape: tuple[int, ...]
    data: Sequence[Any]
    labels: Sequence[str]
    formula: StepFormula

    def number(
        self, label: str, term: Term, index: Index, value: float, exact: str, wrong: Iterable[Mistake], whole: bool
    ) -> Number:
        """Return a number with its arithmetic; `whole` keeps the 1s and 0s that were read."""
        simple, leaf = arithmetic.simplified(term, whole), leaf_text(self.data)
        numbers, digits = arithmetic.written(simple, leaf, value)
        begun = arithmetic.begun(simple)
        return Number(
            label,
            numbers,
            value,
            exact,
            tuple(wrong),
            arithmetic.expression(arithmetic.simplified(term, True), self._letter(index)),
            "" if begun is simple else arithmetic.expression(begun, leaf(arithmetic.SHOWN)),
            whole,
            digits,
            self._follow(term, index),
        )

    def defined(self, term: Term, index: Index, seen: set[Any], slips: Mapping[str, Slips]) -> Iterator[Number]:
        """Yield the labelled parts of a term that were not seen before, each with its element or row."""
        for part in labelled(term):
            key = (part.label, tuple((leaf.source, leaf.value) for leaf in leaves(part)))
            if key in seen or part.op == "max":
                continue
            seen.add(key)
            wrong = mistakes(slips.get(part.label, ()) if part.op == "ratio" else (), part, Asked())
            exact = form(term_value(part, self.data))
            yield self.number(self._label(part, index), part, index, part.value, exact, wrong, False)

    def _label(self, part: Term, index: Index) -> str:
        """Return a labelled part's name with the element, or the row, that it belongs to."""
        name, bracket, inside = part.label.partition("[")
        name = self.formula.in_label(name)
        if not bracket:
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
        """Return the function that works a term's value from other numbers of inputs and labelled parts, by label."""

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
    """Yield the numbers of one result; its most telling element shows all that it is made of."""
    parts = list(parts)
    best = max((part for part in parts if isinstance(part, tuple)), key=_telling, default=None)
    for part in parts:
        if isinstance(part, Number):
            yield part
        elif part is not best:
            yield part[0]
        else:
            number, term, index = part
            label = str(number.label)
            yield working.number(label, term, index, number.value, number.exact, number.mistakes, True)


def _telling(element: Element) -> tuple[bool, bool, int]:
    """Return how much the arithmetic of an element shows: one that is not 0 nor tiny, of many that are not 0."""
    number, term, _ = element
    return bool(number.value), abs(number.value) > TINY, sum(bool(part.value) for part in addends(term))
