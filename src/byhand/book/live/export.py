"""The graph of a lesson as plain values: what a page needs to show its numbers and to work them again."""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.book.lessons.lesson import Number
from byhand.book.live.graph import Cells, LessonGraph
from byhand.book.live.program import Form
from byhand.book.words.language import say
from byhand.engine.terms import element_name
from byhand.tracing.answers import finite


def as_json(graph: LessonGraph, lang: str) -> dict[str, Any]:
    """Return a graph with its lesson's words in `en` or `zh`, ready for JSON.

    arrays    each with its name, shape, first cell, and what it is: "free" to be changed, an "index", or neither
    values    of all cells, as the lesson computed them
    forms     programs without cells: how many they read, constants, operations on registers, labels of registers
    programs  of each cell: the form's number and the cells that it reads; null for a given one
    steps     each with its title, the arrays that it reads and makes, and its numbers: label, value, cell, register
              (-1 for the cell's value), and the typical mistakes: the wrong value, and its words' number
    losses    each with its array, and pairs of an array and its gradient
    """
    forms: dict[Form, int] = {}
    words: dict[str, int] = {}
    programs = [p and [forms.setdefault(p.form, len(forms)), *p.cells] for p in graph.programs]

    def number(n: Number, labels: dict[str, tuple[int, int]]) -> list[Any]:
        cell, register = labels.get(say(n.label, "en"), (-1, -1))
        slips = [[m.value, words.setdefault(m.said(lang), len(words))] for m in n.mistakes]
        return [say(n.label, lang), float(n.value), cell, register, slips]

    steps = []
    for step, link in zip(graph.lesson.steps, graph.links, strict=True):
        labels = _labels(graph, (*link.reads, *link.makes))
        numbers = [number(n, labels) for n in step.numbers]
        arrays = {"reads": list(dict.fromkeys(link.reads)), "makes": list(link.makes)}
        steps.append({"title": step.title.said(lang), **arrays, "numbers": numbers})
    return finite(
        {
            "lesson": graph.lesson.name,
            "title": graph.lesson.title.said(lang),
            "arrays": [[a.name, list(a.shape), a.first, _kind(a)] for a in graph.arrays],
            "values": graph.numbers,
            "forms": [form.as_json() for form in forms],
            "programs": programs,
            "steps": steps,
            "words": list(words),
            "losses": [[loss.array, sorted(loss.gradients.items())] for loss in graph.losses],
        }
    )


def _kind(array: Cells) -> str:
    return "free" if array.is_free else "index" if array.data.dtype.kind in "iu" else ""


def _labels(graph: LessonGraph, places: tuple[int, ...]) -> dict[str, tuple[int, int]]:
    """Return the cells and registers of a step's numbers by their labels; of two of one name the one made last."""
    found: dict[str, tuple[int, int]] = {}
    for place in places:
        array = graph.arrays[place]
        found |= array.labels
        if array.name:
            names = (element_name(array.name, index) for index in np.ndindex(*array.shape))
            found |= {name: (array.first + k, -1) for k, name in enumerate(names)}
    return found
