"""Which elements an element is made from, as a rule for all elements of its tensor, found by asking for a few.

On each axis of an array, the first and the last place that are read are `base + sum of c * i` over the element's own
index i: a row is its own place on one axis and everything on the other. One place of the index may also count
divided, `i // d`, as where a column's head is asked for; with i itself that gives `i % d` too. What a rule leads to
is cut to the array; an element whose places all lie outside reads nothing of it. A rule that some element breaks is
none.
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
TRIED, MORE = 10, 60  # elements that a rule must hold for; where some read other arrays, or these have no rule


def regions(questions: Questions, name: str, gradient: bool) -> list[dict[str, Any]]:
    """Return for each array that is read its name, and its rule: [first, last] on each axis, or None.

    divided  the places of the index that count divided, as [axis, d]; their coefficients are the last
    """
    trace = questions.pass_of(name)
    shape = tuple(trace.tensor(name).shape)
    read: dict[Index, dict[tuple[str, bool], Corner]] = {}
    rules: list[dict[str, Any]] = []
    for count in (TRIED, MORE):
        with whole_sums(), np.errstate(all="ignore"):
            for index in _tried(shape, count):
                if index not in read:
                    read[index] = dict(_corners(questions.answer(name, index, gradient)))
        found = {index: each for index, each in read.items() if each}  # a masked element reads nothing
        arrays = dict.fromkeys(array for each in found.values() for array in each)
        rules = [
            {"name": n, "gradient": g}
            | _rule({i: each.get((n, g)) for i, each in found.items()}, shape, trace.tensor(n).shape)
            for n, g in arrays
        ]
        if all(rule["axes"] is not None for rule in rules) and all(
            each.keys() == arrays.keys() for each in found.values()
        ):
            break
    return rules


def _tried(shape: tuple[int, ...], count: int) -> Iterator[Index]:
    """Yield the first and the last element of a tensor, and some between, each once."""
    inside = np.random.default_rng(0).integers(0, shape, (count, len(shape))).tolist()
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


def _rule(read: dict[Index, Corner | None], shape: tuple[int, ...], array: tuple[int, ...]) -> dict[str, Any]:
    """Return the rule that all elements keep: [[base, c...], [base, c...]] for each axis; None if there is none."""
    reads = np.array([corner is not None for corner in read.values()])
    wanted = np.array([corner for corner in read.values() if corner is not None]).reshape((reads.sum(), -1))
    last = np.repeat(array, 2) - 1
    for divided in [(), *(((axis, d),) for axis, n in enumerate(shape) for d in _divisors(n, array))]:
        given = np.array([[1, *index, *(index[axis] // d for axis, d in divided)] for index in read])
        fits = [_fit(given[reads], *each) for each in zip(wanted.T, last, strict=True)]
        columns = [fit for fit in fits if fit is not None]
        if len(columns) < len(fits):
            continue
        ends = given[~reads] @ np.reshape(columns, (len(fits), given.shape[1])).T
        if ((ends[:, ::2] > last[::2]) | (ends[:, 1::2] < 0)).any(axis=1).all():
            axes = [
                [fit.astype(int).tolist() for fit in pair] for pair in zip(columns[::2], columns[1::2], strict=True)
            ]
            return {"divided": [list(each) for each in divided], "axes": axes}
    return {"divided": [], "axes": None}


def _divisors(n: int, array: tuple[int, ...]) -> list[int]:
    """Return by what an index below n may count divided: pairs, halves, an array's heads or what each has."""
    return sorted({d for d in (2, n // 2, *array, *(n // m for m in array if m)) if 1 < d < n and n % d == 0})


def _fit(given: np.ndarray, wanted: np.ndarray, last: int) -> np.ndarray | None:
    """Return the whole coefficients that lead to these places, cut to 0 and the last one; None if there are none."""
    inside = (wanted > 0) & (wanted < last)
    for some in (np.ones_like(inside), inside):
        if some.sum() > given.shape[1] or some.all():
            fit = np.rint(np.linalg.lstsq(given[some], wanted[some], rcond=None)[0])
            if np.array_equal(np.clip(given @ fit, 0, last), wanted):
                return fit
    return None
