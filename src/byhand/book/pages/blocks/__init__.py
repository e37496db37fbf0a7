"""The kinds of generated block, each a function (page, language, *arguments) -> Markdown, by name in `BLOCKS`."""

from byhand.book.pages.blocks import (
    by_hand,
    devices,
    equations,
    excerpts,
    gradients,
    lessons,
    numbers,
    path,
    pictures,
    reasons,
    shapes,
    steps,
)
from byhand.book.pages.blocks.markdown import BLOCKS

__all__ = [
    "BLOCKS",
    "by_hand",
    "devices",
    "equations",
    "excerpts",
    "gradients",
    "lessons",
    "numbers",
    "path",
    "pictures",
    "reasons",
    "shapes",
    "steps",
]
