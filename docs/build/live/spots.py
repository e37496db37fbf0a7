"""Where a picture shows arrays of a lesson, so that a page can light up those of the current step."""

from __future__ import annotations

from byhand.book.pictures.canvas import WIDTH
from byhand.book.pictures.of_lessons import OF_LESSONS
from byhand.book.pictures.picture import placed
from live.graph import LessonGraph
from pictures import PICTURES

Spot = tuple[list[int], float, float, float, float]


def spots(picture: str, graph: LessonGraph, lang: str) -> list[Spot]:
    """Return the arrays of the graph at each place, and its left, top, width and height in percent of the picture."""
    found, high = placed(PICTURES[picture].scene(), lang)
    across, down = 100 / WIDTH, 100 / high
    return [
        (arrays, _n(p.x * across), _n(p.y * down), _n(p.width * across), _n(p.height * down))
        for p in found
        if p.element.shows
        if (arrays := [k for k, array in enumerate(graph.arrays) if array.name == p.element.shows])
    ]


def _n(percent: float) -> float:
    return round(percent, 2)


def is_listed(picture: str, lesson: str) -> bool:
    """Return whether a picture is one of a lesson's own."""
    return PICTURES[picture] in OF_LESSONS[lesson]


def lesson_of(picture: str, lessons: dict[str, LessonGraph]) -> str | None:
    """Return which of these lessons a picture shows: the first that lists it, or the only one."""
    listed = [name for name in lessons if is_listed(picture, name)]
    return listed[0] if listed else next(iter(lessons), None) if len(lessons) == 1 else None
