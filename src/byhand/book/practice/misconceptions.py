"""Misconceptions: the wrong numbers that typical mistakes lead to, for one element at a time.

A wrong answer that equals one of them tells what went wrong, and `quiz` and `grade` say so. Nothing is typed: each is
the right number's arithmetic with one thing changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.practice.edits import Asked, Slips
from byhand.book.words.language import Words
from byhand.engine.terms import Index, Term

if TYPE_CHECKING:
    from byhand.book.practice.edits import Arrays


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong number and what leads to it, in both languages; with its arithmetic, where that is known."""

    value: float
    en: str
    zh: str
    term: Term | None = field(default=None, compare=False, repr=False)

    def said(self, lang: str) -> str:
        """Return what leads to it in `en` or `zh`."""
        return Words(self.en, self.zh).said(lang)


def forward_mistakes(stem: str, inputs: Arrays, index: Index, static: dict[str, Any], term: Term) -> list[Mistake]:
    """Return the wrong numbers for one element of an equation's (first) result, whose arithmetic is `term`."""
    return list(_made(ENTRIES[stem].mistakes, term, Asked(index, inputs, static)))


def backward_mistakes(
    stem: str, inputs: Arrays, d_result: np.ndarray, slot: int, index: Index, static: dict[str, Any], term: Term
) -> list[Mistake]:
    """Return the wrong numbers for one element of the gradient of input number `slot`."""
    return list(_made(ENTRIES[stem].gradient_mistakes, term, Asked(index, inputs, static, d_result, slot)))


def part_mistakes(stem: str, term: Term) -> list[Mistake]:
    """Return the wrong numbers for a labelled part, such as a mean or a variance."""
    slips = ENTRIES[stem].part_mistakes.get(term.label, ()) if term.op == "ratio" else ()
    return list(_made(slips, term, Asked()))


def _made(slips: Slips, term: Term, at: Asked) -> Iterator[Mistake]:
    for en, zh, edit in slips:
        try:
            wrong = edit(term, at)
        except (ArithmeticError, ValueError):  # such as the logarithm of 0: nobody gets a number
            continue
        if wrong is not None and not math.isnan(wrong.value):
            yield Mistake(wrong.value, en, zh, wrong)
