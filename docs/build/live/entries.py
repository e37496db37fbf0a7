"""Hooks in the worked example of an equation's page: its entry's numbers as a graph, there and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.lessons.letters import label
from byhand.book.numbers import closed_form
from byhand.engine import registry
from live.graph import LessonGraph
from live.working import WORKED, goes_back, graph
from pages.answers.equations import lettered, worked_example
from pages.blocks.arrays import number_as_text

LONGEST = 12  # characters of a closed form in a cell; instead of a longer one its decimals stand there
Block = tuple[int, str, list[list[Any]]]  # a displayed block: its step, what it is, its lines
FORMULA: Block = (0, "", [])  # a block without numbers
Pairs = list[tuple[str, closed_form.Numbers]]


@cache
def graph_of_entry(stem: str) -> LessonGraph:
    """Return the graph of an equation's entry; its arrays and numbers are called by the letters of the page."""
    found, equation = graph(WORKED + stem), registry[stem]
    letters = {symbol.name: symbol.latex for symbol in equation.inputs}
    letters |= {found.arrays[k].name: r.latex for k, r in zip(_results(found), equation.results, strict=True)}
    for array in found.arrays:
        if latex := letters.get(array.name.removeprefix("∂")):
            array.label = ("∂" if array.name.startswith("∂") else "") + label(latex)
    steps = (replace(step, numbers=tuple(lettered(stem, n) for n in step.numbers)) for step in found.lesson.steps)
    found.lesson = replace(found.lesson, steps=tuple(steps))
    return found


def _results(found: LessonGraph) -> tuple[int, ...]:
    return found.links[_last(found)].makes


def _last(found: LessonGraph) -> int:
    """Return the place of the last step forward."""
    return max(n for n, step in enumerate(found.lesson.steps) if not step.is_derivative)


def blocks(found: LessonGraph, stem: str) -> Iterator[Block]:
    """Yield the page's blocks in their order: the formula, what is given, the results, and the same on the way back."""
    entry, example = ENTRIES[stem], worked_example(stem)
    places = {array.name: place for place, array in enumerate(found.arrays)}
    first = {array.name: place for place, array in reversed(list(enumerate(found.arrays)))}
    last, results = _last(found), _results(found)
    yield FORMULA
    yield 0, "given", _lines(found, example.given, [first[name] for name in entry.inputs])
    yield last + 1, "made", _lines(found, example.result, results)
    if not goes_back(stem):
        return
    yield FORMULA
    yield 0, "given", _lines(found, example.back, [first[f"∂{found.arrays[result].name}"] for result in results])
    if back := [places[f"∂{name}"] for name in entry.gradients]:
        yield len(found.lesson.steps), "made", _lines(found, example.gradients, back)


def _lines(found: LessonGraph, pairs: Pairs, places: Iterable[int]) -> list[list[Any]]:
    """Return arrays side by side: the page breaks the line where it has no room."""
    return [[piece for pair, place in zip(pairs, places, strict=True) for piece in _line(found, *pair, place)]]


def _line(found: LessonGraph, letter: str, numbers: closed_form.Numbers, place: int) -> list[Any]:
    """Return the letter of an array, and what the page needs of each of its matrices."""
    cells, forms = found.arrays[place], np.array(numbers, dtype=object)
    texts = [_text(form) for form in forms.ravel().tolist()]
    whole = np.reshape(texts, (-1, *np.atleast_2d(forms).shape[-2:]))
    line: list[Any] = [f"{letter} ="]
    for k, part in enumerate(whole):
        columns = part.shape[1]
        line.append([place, cells.first + k * part.size, columns, columns, part.ravel().tolist(), 1])
    return line


def _text(form: Any) -> str:
    """Return a number in closed form as text, in decimals if it is long."""
    text = as_text(str(form))
    is_short = len(text) <= LONGEST and not re.search(r"cos|sin|tanh|erf", text)
    return text if is_short else number_as_text(closed_form.value(form))


def as_text(form: str) -> str:
    """Return a number in closed form as text."""
    text = form.replace("sqrt", "√").replace("log", "ln").replace("-", "−").replace("inf", "∞")
    return re.sub(r"(?<!ln)\((\w+)\)", r"\1", re.sub(r"ln\((\w+)\)", r"ln \1", text))
