"""The kinds of generated block, each a function (page, language, *arguments) -> Markdown, by name in `BLOCKS`."""

from byhand.book.pages.blocks import (
    answers,
    by_hand,
    choices,
    devices,
    equations,
    excerpts,
    gradients,
    kv_cache,
    lessons,
    numbers,
    path,
    pictures,
    reasons,
    references,
    shapes,
    steps,
    training,
)
from byhand.book.pages.blocks.markdown import BLOCKS

__all__ = [
    "BLOCKS",
    "answers",
    "by_hand",
    "choices",
    "devices",
    "equations",
    "excerpts",
    "gradients",
    "kv_cache",
    "lessons",
    "numbers",
    "path",
    "pictures",
    "reasons",
    "references",
    "shapes",
    "steps",
    "training",
]
