"""Typical mistakes as edits of one element's arithmetic: the wrong term is the right one with one thing changed.

An edit takes the right term and the element asked for, and returns the wrong term, or None if the mistake cannot
happen there. A wrong answer that equals a wrong term names the mistake in the quiz and in `grade`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from byhand.book.words.language import Words
from byhand.engine.terms import Index, Term, element, function, made, number, product, ratio, total

if TYPE_CHECKING:
    import numpy as np

    Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """The element asked for: of an equation's (first) result, or of the gradient of input `slot`.

    `d` is the cotangent of the (first) result, for gradients only.
    """

    index: Index = ()
    inputs: Arrays = ()
    static: dict[str, Any] = field(default_factory=dict)
    d: Any = None
    slot: int = 0

    def read(self, which: int, name: str) -> Term:
        """Return the element of an input at the index asked for."""
        return element(self.inputs, which, self.index, name)

    def along(self, axis: int, name: str) -> list[Term]:
        """Return the elements of the first input on an axis through the index asked for."""
        before, after = self.index[:axis], self.index[axis:][1:]
        return [element(self.inputs, 0, (*before, i, *after), name) for i in range(self.inputs[0].shape[axis])]


Edit = Callable[[Term, Asked], Term | None]
Slips = tuple[tuple[str, str, Edit], ...]
"""Mistakes: in English, in Chinese, as an edit of the right term."""


@dataclass(frozen=True)
class Mistake(Words):
    """A wrong number and, in words, the mistake that leads to it; with its arithmetic, if known."""

    value: float
    term: Term | None = field(default=None, compare=False, repr=False)


def mistakes(slips: Slips, term: Term, at: Asked) -> Iterator[Mistake]:
    """Yield the wrong numbers that slips lead to; `term` is the right one's arithmetic."""
    for en, zh, edit in slips:
        try:
            wrong = edit(term, at)
        except (ArithmeticError, ValueError):  # the mistake gives no number, as in the logarithm of 0
            continue
        if wrong is not None and not math.isnan(wrong.value):
            yield Mistake(en, zh, wrong.value, wrong)


def first(term: Term, at: Asked) -> Term:
    """Keep the first part alone: no divisor, no function, no other addends."""
    return term.parts[0]


def rest(term: Term, at: Asked) -> Term:
    """Leave out the first part."""
    return made(term.op, term.parts[1:])


def negated(term: Term, at: Asked) -> Term:
    """Negate the term."""
    return function("negative", term)


def cotangent(term: Term, at: Asked) -> Term:
    """Return the cotangent at the index asked for, as if the slope were 1."""
    return number(at.d[at.index])


def over(divisor: Term) -> Edit:
    """Divide by this number too."""
    return lambda term, at: ratio(term, divisor)


def without(which: int) -> Edit:
    """Leave out the addends read from this input."""
    return lambda term, at: total(part for part in term.parts if part.source is None or part.source[0] != which)


def nth(place: int, edit: Edit) -> Edit:
    """Edit the part at this place."""
    return lambda term, at: _with_parts(term, [edit(p, at) if i == place else p for i, p in enumerate(term.parts)])


def within(edit: Edit, *labels: str) -> Edit:
    """Edit the parts with these labels."""
    return _where(lambda part: part.label in labels, edit)


def of_input(which: int, edit: Edit) -> Edit:
    """Edit the elements of this input."""
    return _where(lambda part: part.source is not None and part.source[0] == which, edit)


def transposed(which: int) -> Edit:
    """Read this input transposed, if it is square."""
    return _reading(which, lambda place, shape: swapped(place) if shape[-1] == shape[-2] else None)


def other_row(which: int, step: int) -> Edit:
    """Read the row of this input that is `step` further; the first follows the last."""
    return _reading(which, lambda place, shape: ((place[0] + step) % shape[0], *place[1:]))


def swapped(index: Index) -> Index:
    """Return an index with its last two places swapped."""
    return (*index[:-2], index[-1], index[-2])


def row_times_column(left: np.ndarray, right: np.ndarray, index: Index) -> Term:
    """Return an element of a matrix product; a right factor without a batch serves the whole batch."""
    column = (right[index[:-2]] if right.ndim > 2 else right)[:, index[-1]]
    return total(product((number(a), number(b))) for a, b in zip(left[index[:-1]], column, strict=True))


def _reading(which: int, other: Callable[[Index, tuple[int, ...]], Index | None]) -> Edit:
    """Read other elements of an input: `other` returns the wrong index for the right one and the shape."""

    def read(leaf: Term, at: Asked) -> Term | None:
        place = other(leaf.source[1], at.inputs[which].shape) if leaf.source else None
        return element(at.inputs, which, place, leaf.label.partition("[")[0]) if place else None

    return of_input(which, read)


def _where(chosen: Callable[[Term], bool], edit: Edit) -> Edit:
    """Edit each matching part once, and recompute its ancestors."""

    def edited(term: Term, at: Asked) -> Term | None:
        done: dict[int, Term | None] = {}

        def visit(part: Term) -> Term | None:
            if id(part) not in done:
                done[id(part)] = edit(part, at) if chosen(part) else _with_parts(part, [visit(p) for p in part.parts])
            return done[id(part)]

        return visit(term)

    return edited


def _with_parts(term: Term, parts: list[Term | None]) -> Term | None:
    """Return the same operation on other parts; None if one of them is None."""
    if all(new is old for new, old in zip(parts, term.parts, strict=True)):
        return term
    given = [part for part in parts if part is not None]
    return made(term.op, given, term.label) if len(given) == len(parts) else None
