"""A lesson worked as a graph: with its own numbers, with others of the same form, and with each of its switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from byhand.book.finding.equations import of_equations
from byhand.book.lessons.changes import Given, with_changes
from byhand.book.lessons.examples import TITLES, of_entry
from byhand.book.lessons.examples import __name__ as home
from byhand.book.lessons.lesson import Lesson, Maker
from byhand.book.numbers import closed_form
from byhand.engine import registry
from byhand.engine.context import whole_sums
from live.collecting import Collector
from live.graph import LessonGraph, Switch
from live.settings import SWITCHES

NEAR = 1e-3  # how far numbers in general position are from the lesson's, so that a ReLU lets the same ones through
WORKED = "worked-"  # before an equation's name: its entry's numbers
FORWARD = ("orthogonalise",)  # whose derivative has no terms, only slopes, which other numbers would not change
_WALKED: dict[tuple[str, str], Collector] = {}


def entry_of(name: str) -> str:
    """Return the equation whose entry's numbers a graph of this name has; "" for that of a lesson."""
    return name.removeprefix(WORKED) if name.startswith(WORKED) else ""


def goes_back(stem: str) -> bool:
    """Return whether the graph of an equation's entry has the page's way back, from its one result, in terms."""
    return len(registry[stem].results) == 1 and stem not in FORWARD


def graph(name: str, array: Maker = closed_form.array, changes: Given | None = None) -> LessonGraph:
    """Return the graph of the lesson of this name, or of an equation's entry (`worked-softmax`), with the arrays that `array` makes of its closed forms.

    changes  other settings by name, such as a temperature
    """
    changes = changes or {}
    start = {**_given(name), **changes}
    general = _in_general_position(name, start)
    whole = Collector(worked(name, array, changes), general.found).graph
    is_fixed = bool(entry_of(name)) and _chooses(name, start)
    for cells, found in zip(whole.arrays, general.graph.arrays, strict=True):
        cells.programs, cells.is_free = found.programs, found.is_free and not is_fixed
        cells.slider = None if is_fixed else cells.slider
    for switch in SWITCHES.keys() & start.keys():
        forms = {}
        for value in _file(name).CHOICES[switch]:
            other = _in_general_position(name, {**start, switch: value}).graph
            if [a.data.shape for a in other.arrays] != [a.data.shape for a in general.graph.arrays]:
                raise ValueError(f"{name} has other arrays with {switch}={value}")
            forms[float(value)] = other.programs
        whole.switches.append(Switch.of(whole.add(switch, float(start[switch])), forms))
        whole.arrays[-1].is_free = False
    return whole


graph_of = cache(graph)


def changed_cells(own: LessonGraph, changes: Sequence[str]) -> list[tuple[int, float]]:
    """Return the cells of given numbers that changes such as `W_K=W_Q` set, and what they become.

    Other tokens are other arithmetic, not other numbers: for a change of these there are none.
    """
    name, given = own.lesson.name, _given(own.lesson.name)
    new = with_changes(given, changes, getattr(_file(name), "CHOICES", {}))
    usual = {**new, **{switch: given[switch] for switch in SWITCHES.keys() & given.keys()}}
    other = Collector(worked(name, closed_form.array, usual), _in_general_position(name, {**given}).found).graph
    for array in own.arrays[len(other.arrays) :]:
        other.add(array.name, float(new[array.name]))
    moved = [one for one in zip(own.arrays, other.arrays, strict=True) if not one[0].programs]
    if any(a.data.dtype.kind in "iu" and not np.array_equal(a.data, b.data) for a, b in moved):
        return []
    pairs = (
        (a.first + k, old, x) for a, b in moved for k, (old, x) in enumerate(zip(a.numbers, b.numbers, strict=True))
    )
    return [(cell, x) for cell, old, x in pairs if x != old]


def _in_general_position(name: str, start: Given) -> Collector:
    """Return what is collected of a lesson with these settings: the same for all numbers, so it is walked once."""
    key = name, repr(sorted(start.items()))
    if key not in _WALKED:
        lesson = worked(name, in_general_position, start)
        with whole_sums():  # what a ReLU lets through here or not may change
            _WALKED[key] = Collector(lesson)
    return _WALKED[key]


def _chooses(name: str, start: Given) -> bool:
    """Return whether an equation's arithmetic has another form for other numbers, as which logits top-p keeps."""
    usual = [a.programs for a in _in_general_position(name, start).graph.arrays]
    with whole_sums():
        return any(usual != [a.programs for a in Collector(worked(name, far, start)).graph.arrays] for far in FAR)


def worked(name: str, array: Maker, changes: Mapping[str, Any]) -> Lesson:
    """Work the lesson of this name with the arrays that `array` makes of its closed forms."""
    lesson, start = _file(name).lesson, {**_given(name), **changes}
    with np.errstate(all="ignore"):
        intro, steps, given = lesson(array, start) if start else lesson(array)
        stem = entry_of(name)
        if stem and not goes_back(stem):
            steps = [step for step in steps if not step.is_derivative]
        return Lesson(name, of_equations()[stem].title if stem else TITLES[name], intro, tuple(steps), given)


def _far(seed: int) -> Maker:
    def far(nested: Any) -> np.ndarray:
        near, drawn = in_general_position(nested), np.random.default_rng([seed, *str(nested).encode()])
        return near * np.exp(drawn.normal(size=near.shape)) + (
            0 if np.all(near >= 0) else drawn.normal(size=near.shape)
        )

    return far


FAR = tuple(
    map(_far, range(4))
)  # numbers of another order; what is nowhere negative, such as a mean of squares, stays so


def in_general_position(nested: Any) -> np.ndarray:
    """Return an array whose numbers are a little larger than they are written, each by another amount.

    What is written alike is made alike: a lesson that makes an array twice means the same array.
    """
    exact = closed_form.array(nested)
    return exact + NEAR * np.random.default_rng(list(str(nested).encode())).uniform(0.5, 1.0, exact.shape)


def _given(name: str) -> Given:
    return getattr(_file(name), "GIVEN", {})


def _file(name: str) -> Any:
    if stem := entry_of(name):
        return SimpleNamespace(lesson=partial(of_entry.lesson, stem))
    return import_module(f"{home}.{name.replace('-', '_')}")
