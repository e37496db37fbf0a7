"""What a page's text says of its lessons: a command that changes numbers gets a button; a number is told with its cell."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Container, Mapping
from functools import cache

import numpy as np

from live.graph import LessonGraph
from live.working import changed_cells, graph_of

COMMAND = re.compile(
    r"`byhand work ([\w-]+)((?:\s--set\s(?:\"[^\"`]+\"|[^\s\"`]+))+)(?: --lang \w+)?`.*?(?=\n\n)", re.DOTALL
)

TOLD = re.compile(r"<!-- = ([\w-]+) (\S+) \d+ -->([^\n]*?)<!-- \. -->")


def with_buttons(text: str, lessons: Container[str]) -> str:
    """Return a page with the place of a button below each paragraph that has such a command.

    The first command of a paragraph counts. One that needs another arithmetic, such as other tokens, gets none.
    """

    def place(command: re.Match[str]) -> str:
        paragraph, name, changes = command[0], command[1], tuple(shlex.split(command[2])[1::2])
        cells = _cells(name, changes) if name in lessons else ()
        if not cells:
            return paragraph
        return f'{paragraph}\n\n<div class="live-try" data-lesson="{name}" data-cells="{json.dumps(cells)}"></div>'

    return COMMAND.sub(place, text)


def with_cells(text: str, lessons: Mapping[str, LessonGraph]) -> str:
    """Return a page whose text's numbers, `<!-- = LESSON ELEMENT DIGITS -->`, know their cells."""

    def told(mark: re.Match[str]) -> str:
        cell = _cell(lessons[mark[1]], mark[2]) if mark[1] in lessons else None
        if cell is None:
            return mark[0]
        return f'<span class="live-told" data-lesson="{mark[1]}" data-cell="{cell}">{mark[3]}</span>'

    return TOLD.sub(told, text)


def _cell(found: LessonGraph, element: str) -> int | None:
    """Return the cell of an element as a lesson's steps call it, `attn.weights[2,1]`; None if the graph has none."""
    name, _, index = element.removesuffix("]").partition("[")
    steps = zip(found.lesson.steps, found.links, strict=True)
    named = [
        place
        for step, link in steps
        for array, place in zip(step.arrays, link.makes, strict=False)
        if array.name == name
    ]
    if not named:
        return None
    array, at = found.arrays[named[-1]], tuple(map(int, filter(None, index.split(","))))
    return array.first + (int(np.ravel_multi_index(at, array.shape)) if at else 0)


@cache
def _cells(name: str, changes: tuple[str, ...]) -> list[tuple[int, float]]:
    return changed_cells(graph_of(name), changes)
