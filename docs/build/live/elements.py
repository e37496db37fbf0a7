"""Elements of a lesson's arrays: their arithmetic, the cells that it reads, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from byhand.book.lessons.naming import place
from byhand.book.words.plain_math import plain
from byhand.engine.terms import Index, Term
from byhand.tracing.tracer import Application
from live.graph import Numbered

INDEX = re.compile(
    r"_(?:\{[a-z](?: \\le [a-z]|(?:,[a-z](?:_[a-z])?)*)\}|[a-z](?![a-z]))"
)  # of an element, in a letter


def kept_label(latex: str) -> str:
    """Return what an array that the forward pass keeps is called, as its cells have their own index: exp(S − m)."""
    letter = plain(INDEX.sub("", latex))
    return letter if re.fullmatch(r"\S+|\w+\(.*\)", letter) else f"({letter})"


def term_of(application: Application, index: Index, which: int) -> Term:
    """Return the arithmetic of an element, with the choice in it where numbers decide what it is made of, and all rounds of one."""
    rule = application.equation.rule_terms
    return (
        application.term(index, which) if which or not rule else rule(index, application.arrays, **application.static)
    )


def row_label(label: str, data: np.ndarray) -> str:
    """Return a label of each row of the first input, `loss[0,0,2]`, as the lesson's tables have it."""
    name, bracket, inside = label.partition("[")
    at = tuple(map(int, inside.removesuffix("]").split(","))) if bracket else ()
    return place(name, at, data.shape[: len(at)]) if bracket else label


def reader(arrays: list[Numbered]) -> Callable[[Term], int | None]:
    """Return the function that finds a leaf's cell; a setting stands in terms as a constant with its name."""
    settings = {cells.name: cells for cells in arrays if not cells.data.shape}

    def cell(leaf: Term) -> int | None:
        if leaf.source is not None:
            return arrays[leaf.source[0]].cell(leaf.source[1])
        setting = settings.get(leaf.label)
        return setting.first if setting and setting.numbers == [leaf.value] else None

    return cell


def is_same(cells: Numbered, name: str, data: np.ndarray) -> bool:
    """Return whether a given array is this earlier one: the same object, or the same numbers of the same name."""
    own = f"∂{name.removesuffix('.gradient')}" if name.endswith(".gradient") else name
    return cells.data is data or (cells.name == own and np.array_equal(cells.data, data))
