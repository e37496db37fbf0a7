"""Which elements an element is made from, as a rule for all elements of its tensor, found by asking for a few.

On each axis of an array, the first and the last place that are read are `base + sum of c * i` over the element's own
index i: a row is its own place on one axis and everything on the other. A rule that some element breaks is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from byhand.engine.context import whole_sums
from byhand.engine.terms import Index
from byhand.tracing.answers import Answer
from byhand.tracing.questions import Questions

Corner = tuple[int, ...]  # first and last places on each axis of an array, in turn
TRIED = 10  # elements that a rule must hold for


def regions(questions: Questions, name: str, gradient: bool) -> list[dict[str, Any]]:
    """Return for each array that is read its name, and its rule: [first, last] on each axis, or None."""
    trace = questions.pass_of(name)
    shape = tuple(trace.tensor(name).shape)
    read: dict[Index, dict[tuple[str, bool], Corner]] = {}
    with whole_sums(), np.errstate(all="ignore"):
        for index in _tried(shape):
            read[index] = dict(_corners(questions.answer(name, index, gradient)))
    read = {index: found for index, found in read.items() if found}  # a masked element reads nothing
    arrays = list(dict.fromkeys(array for found in read.values() for array in found))
    return [
        {"name": n, "gradient": g, "axes": _rule({i: found.get((n, g)) for i, found in read.items()})}
        for n, g in arrays
    ]


def _tried(shape: tuple[int, ...]) -> Iterator[Index]:
    """Yield the first and the last element of a tensor, and some between, each once."""
    inside = np.random.default_rng(0).integers(0, shape, (TRIED, len(shape))).tolist()
    yield from dict.fromkeys([(0,) * len(shape), tuple(n - 1 for n in shape), *map(tuple, inside)])


def _corners(answer: Answer) -> Iterator[tuple[tuple[str, bool], Corner]]:
    """Yield the arrays that an answer reads, each with the first and last place on every axis."""
    found: dict[tuple[str, bool], list[Any]] = {}
    for leaf in answer.outlines:
        assert leaf.source
        origin = answer.origins[leaf.source[0]]
        ends = [(int(np.min(axis)), int(np.max(axis))) for axis in leaf.source[1]]
        found.setdefault((origin["name"], origin["gradient"]), []).append(ends)
    for array, places in found.items():
        yield array, tuple(np.ravel([_around(axis) for axis in zip(*places, strict=True)]).astype(int).tolist())


def _around(ends: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    return min(first for first, _ in ends), max(last for _, last in ends)


def _rule(read: dict[Index, Corner | None]) -> list[Any] | None:
    """Return the rule that all elements keep: [[base, c...], [base, c...]] for each axis; None if there is none."""
    if any(corner is None for corner in read.values()):
        return None
    given = np.array([[1, *index] for index in read])
    wanted = np.array(list(read.values())).reshape((len(read), -1))
    fit = np.rint(np.linalg.lstsq(given, wanted, rcond=None)[0])
    if not np.array_equal(given @ fit, wanted):
        return None
    columns = fit.T.astype(int).tolist()
    return [list(pair) for pair in zip(columns[::2], columns[1::2], strict=True)]
