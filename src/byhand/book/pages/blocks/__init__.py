"""The kinds of generated block, each a function (page, language, *arguments) -> Markdown, by name in `BLOCKS`."""

from byhand.book.pages.blocks import (
    answers,
    by_hand,
    devices,
    equations,
    excerpts,
    lessons,
    numbers,
    path,
    pictures,
    shapes,
)
from byhand.book.pages.blocks.markdown import BLOCKS

__all__ = [
    "BLOCKS",
    "answers",
    "by_hand",
    "devices",
    "equations",
    "excerpts",
    "lessons",
    "numbers",
    "path",
    "pictures",
    "shapes",
]
