"""The pictures of each lesson, and all of a lesson's as one."""

from __future__ import annotations

from byhand.book.lessons.examples import SHOWN
from byhand.book.pictures.canvas import GAP, LINE, Canvas
from byhand.book.pictures.picture import PICTURES, Picture
from byhand.book.words.language import Words


def pictures(lesson: str) -> list[Picture]:
    """Return the pictures of a lesson."""
    return [PICTURES[name] for name in SHOWN[lesson]]


def svg(lesson: str, title: Words, lang: str) -> str:
    """Return the pictures of a lesson as one, each below its title."""
    whole = Canvas(lang)
    for picture in pictures(lesson):
        whole.text(4, whole.y + LINE, picture.title, bold=True)
        canvas = picture.drawn(lang)
        whole.put(canvas, 0, whole.y + LINE + 10)
        whole.y += LINE + 10 + canvas.y + GAP
    return whole.svg(title)
