"""The graph of a lesson as plain values: what a page needs to show its numbers and to work them again."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np

from byhand.book.lessons.lesson import Number, Step
from byhand.book.lessons.letters import IN_ARITHMETIC, MEAN
from byhand.book.words.language import say
from byhand.tracing.answers import finite
from live.graph import LessonGraph, Numbered, StepLink
from live.program import Form, Program
from live.settings import LARGEST, SWITCHES

MEAN_AND_VARIANCE = {"mean": MEAN["layer_norm"]}
MOST_PARTS = 40  # that one element names, so that an element which is not worked is not looked for in all numbers


def as_json(graph: LessonGraph, lang: str) -> dict[str, Any]:
    """Return a graph with its lesson's words in `en` or `zh`, ready for JSON.

    arrays    each with its name, shape, first cell, what it is: "free" to be changed, an "index", a "switch", or
              neither; and of a setting its words, a slider's lowest and highest number and step, and whether it ends
              there
    values    of all cells, as the lesson computed them
    forms     programs without cells: how many they read, constants, operations on registers, labels of registers
    programs  of each cell: the form's number and the cells that it reads; null for a given one
    steps     each with its title, the arrays that it reads and makes, and its numbers: label, value, cell, register
              (-1 for the cell's value), and the typical mistakes: the wrong value, and its words' number
    losses    each with its array, pairs of an array and its gradient, and the arrays of the same loss computed later
    choices   each with its cell, and for each of its values the programs of the cells that depend on it
    largest   the largest number that may be given
    """
    forms: dict[Form, int] = {}
    words: dict[str, int] = {}

    def plain(program: Program | None) -> list[int] | None:
        return program and [forms.setdefault(program.form, len(forms)), *program.cells]

    programs = [plain(program) for program in graph.programs]
    choices = [
        [
            graph.arrays[c.array].first,
            [[value, {cell: plain(p) for cell, p in own.items()}] for value, own in c.programs.items()],
        ]
        for c in graph.switches
    ]
    switches = {one.array for one in graph.switches}

    def number(n: Number, cell: int, register: int) -> list[Any]:
        slips = [[m.value, words.setdefault(m.said(lang), len(words))] for m in n.mistakes]
        return [say(n.label, lang), float(n.value), cell, register, slips]

    steps = []
    for step, link in zip(graph.lesson.steps, graph.links, strict=True):
        arrays = {"reads": list(dict.fromkeys(link.reads)), "makes": list(link.makes)}
        numbers = [number(n, *place) for n, place in zip(step.numbers, places(graph, step, link), strict=True)]
        steps.append({"title": step.title.said(lang), **arrays, "numbers": numbers})
    return finite(
        {
            "lesson": graph.lesson.name,
            "title": graph.lesson.title.said(lang),
            "arrays": [
                [
                    a.label or a.name,
                    list(a.shape[:-1] if not a.name and a.shape[1:] and a.shape[-1] == 1 else a.shape),  # rstd[0]
                    a.first,
                    "switch" if k in switches else _kind(a),
                    *_moved(a, lang),
                ]
                for k, a in enumerate(graph.arrays)
            ],
            "values": graph.numbers,
            "forms": [_named(form).as_json() for form in forms],
            "programs": programs,
            "steps": steps,
            "words": list(words),
            "losses": [[one.array, sorted(one.gradients.items()), _later(graph, one.array)] for one in graph.losses],
            "choices": choices,
            "largest": LARGEST,
        }
    )


def _later(graph: LessonGraph, loss: int) -> list[int]:
    """Return the places of single numbers with the loss's own name in another scope: `after.loss`."""
    own = graph.arrays[loss].name.rpartition(".")[2]
    alike = (k for k, a in enumerate(graph.arrays) if not a.data.shape and a.name.rpartition(".")[2] == own)
    return [k for k in alike if k != loss]


def _named(form: Form) -> Form:
    """Return a form whose labelled parts are called as the lesson's tables call them: σ², not var."""
    own = IN_ARITHMETIC | (MEAN_AND_VARIANCE if any(label == "var" for _, label in form.labels) else {})
    return replace(form, labels=tuple((at, own.get(label, label)) for at, label in form.labels))


def _kind(array: Numbered) -> str:
    return "free" if array.is_free else "index" if array.data.dtype.kind in "iu" else ""


def _moved(array: Numbered, lang: str) -> list[Any]:
    """Return how a single number is moved, if it is."""
    if one := array.slider:
        return [[one.words.said(lang), one.low, one.high, one.step, one.is_bound]]
    return [[SWITCHES[array.name].said(lang), 0, 1, 1, True]] if array.name in SWITCHES else []


def places(graph: LessonGraph, step: Step, link: StepLink) -> list[tuple[int, int]]:
    """Return the cell and the register of each of a step's numbers; -1 for a number that no array has.

    Before an element come the parts that it names and no earlier one did. An element is known by its index and value.
    """
    found = [(-1, -1)] * len(step.numbers)
    begin = 0
    for array in (graph.arrays[place] for place in link.makes):
        for cell, (index, value) in enumerate(np.ndenumerate(np.reshape(array.numbers, array.shape)), array.first):
            named = array.programs[cell - array.first].form.named if array.programs else []
            likely = (begin + len(named), *range(begin, min(begin + MOST_PARTS, len(step.numbers))))
            at = next(
                (k for k in likely if k < len(step.numbers) and _is(step.numbers[k], index, float(value))), None
            )
            if at is None:  # it is not worked
                continue
            found[at] = cell, -1
            if len(named) == at - begin:
                found[begin:at] = [(cell, register) for register in named]
            begin = at + 1
    return found


def _is(number: Number, index: tuple[int, ...], value: float) -> bool:
    """Return whether a number is an element with this index and value."""
    inside = re.search(r"\[([\d,]+)\]$", say(number.label, "en"))
    own = tuple(map(int, inside[1].split(","))) if inside else ()
    return own == index and math.isclose(number.value, value, rel_tol=1e-9, abs_tol=1e-15)
