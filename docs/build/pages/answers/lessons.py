"""Answers about the worked examples: their arrays, also with a number changed."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from byhand.book.lessons.examples import make
from byhand.book.lessons.examples.paper_gpt import VOCABULARY as vocabulary
from byhand.book.lessons.letters import letter
from byhand.book.pictures.curves import loss as loss_of
from byhand.book.pictures.passes import TOKENS as tokens
from byhand.errors import ByhandError
from pages.blocks.arrays import matrix_of


@cache
def lesson_arrays(name: str, *changes: str) -> dict[str, np.ndarray]:
    """Return the arrays of a worked example by name, with changes as `byhand work --set` takes them."""
    steps = make(name, changes=changes).steps
    return {array.name: array.data for step in steps for array in (*step.inputs, *step.arrays)}


def changed_arrays(words: tuple[str, ...]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield arrays of a worked example: letter, the array, what it becomes, whether it is a number.

    words  the example's name, changes such as `W_K=W_Q`, and names of arrays; ByhandError for a name that is none
    """
    name, *rest = words
    before, after = lesson_arrays(name), lesson_arrays(name, *(word for word in rest if "=" in word))
    for word in (word for word in rest if "=" not in word):
        if word not in before:
            raise ByhandError(f"the example has no array {word!r}. Use one of {', '.join(before)}.")
        yield letter(word), _matrices(before[word]), _matrices(after[word]), np.ndim(before[word]) == 0


def _matrices(data: Any) -> str:
    rows = np.asarray(data, dtype=float)
    return r",\; ".join(map(_matrices, rows)) if rows.ndim > 2 else matrix_of(rows)
