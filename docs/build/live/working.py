"""A lesson worked as a graph: with its own numbers, with others of the same form, and with each of its switches."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from byhand.book.lessons.changes import Given
from byhand.book.lessons.examples import TITLES
from byhand.book.lessons.examples import __name__ as home
from byhand.book.lessons.lesson import Lesson, Maker
from byhand.book.numbers import closed_form
from byhand.engine.context import whole_sums
from live.collecting import Collector
from live.graph import LessonGraph, Switch
from live.settings import SWITCHES

NEAR = 1e-3  # how far numbers in general position are from the lesson's, so that a ReLU lets the same ones through
_WALKED: dict[tuple[str, str], Collector] = {}


def graph(name: str, array: Maker = closed_form.array, changes: Given | None = None) -> LessonGraph:
    """Return the graph of the lesson of this name, with the arrays that `array` makes of its closed forms.

    changes  other settings by name, such as a temperature
    """
    changes = changes or {}
    start = {**_given(name), **changes}
    general = _in_general_position(name, start)
    whole = Collector(worked(name, array, changes), general.found).graph
    for cells, found in zip(whole.arrays, general.graph.arrays, strict=True):
        cells.programs, cells.is_free = found.programs, found.is_free
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


def _in_general_position(name: str, start: Given) -> Collector:
    """Return what is collected of a lesson with these settings: the same for all numbers, so it is walked once."""
    key = name, repr(sorted(start.items()))
    if key not in _WALKED:
        lesson = worked(name, in_general_position, start)
        with whole_sums():  # what a ReLU lets through here or not may change
            _WALKED[key] = Collector(lesson)
    return _WALKED[key]


def worked(name: str, array: Maker, changes: Mapping[str, Any]) -> Lesson:
    """Work the lesson of this name with the arrays that `array` makes of its closed forms."""
    lesson, start = _file(name).lesson, {**_given(name), **changes}
    with np.errstate(all="ignore"):
        intro, steps, given = lesson(array, start) if start else lesson(array)
        return Lesson(name, TITLES[name], intro, tuple(steps), given)


def in_general_position(nested: Any) -> np.ndarray:
    """Return an array whose numbers are a little larger than they are written, each by another amount.

    What is written alike is made alike: a lesson that makes an array twice means the same array.
    """
    exact = closed_form.array(nested)
    return exact + NEAR * np.random.default_rng(list(str(nested).encode())).uniform(0.5, 1.0, exact.shape)


def _given(name: str) -> Given:
    return getattr(_file(name), "GIVEN", {})


def _file(name: str) -> Any:
    return import_module(f"{home}.{name.replace('-', '_')}")
