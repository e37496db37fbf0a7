"""Offsets in row-major memory as arithmetic, shared by the two examples about memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from byhand.book.lessons.lesson import Number, written
from byhand.book.numbers import arithmetic
from byhand.book.practice.misconceptions import Mistake
from byhand.book.words.language import Words
from byhand.engine.terms import Term, number, product, total


def offset(index: Sequence[int], shape: Sequence[int]) -> Term:
    """Return ((i J + j) K + k) as a term."""
    term = number(index[0])
    for i, n in zip(index[1:], shape[1:], strict=True):
        term = total((product((term, number(n))), number(i)))
    return term


def offset_number(name: str, index: Sequence[int], shape: Sequence[int]) -> Number:
    """Return the flat offset of an element as a number to work out."""
    term = offset(index, shape)
    by_columns = sum(i * math.prod(shape[:k]) for k, i in enumerate(index))
    mistakes = (
        Mistake(by_columns, "laid the array out by columns (column-major)", "按列主序排列了"),
        Mistake(offset([i + 1 for i in index], shape).value, "counted from 1", "下标从 1 数起了"),
        Mistake(sum(index), "added the indices", "把下标直接相加了"),
    )
    place = written(name, tuple(index))
    label = Words(f"offset of {place}", f"{place} 的偏移量")
    return Number(label, arithmetic.expression(term), term.value, mistakes=mistakes)
