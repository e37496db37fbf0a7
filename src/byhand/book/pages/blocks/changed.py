"""Generated displays of a worked example with some of its numbers changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from byhand.book.lessons.examples import make
from byhand.book.lessons.letters import letter as letter_of
from byhand.book.pages.blocks.arrays import matrix_of
from byhand.book.pages.blocks.markdown import block, display_lines
from byhand.book.words.language import Words
from byhand.errors import ByhandError

UNCHANGED = Words(r"\text{ (unchanged)}", r"\text{（不变）}")


@block
def changed(page: Path, lang: str, name: str, *words: str) -> str:
    """Arrays of a worked example as they are, and what changes make of them: `changed matrix-core W_K=W_Q P loss`."""
    changes = tuple(word for word in words if "=" in word)
    plain, now = (dict(_arrays(make(name, changes=c))) for c in ((), changes))
    return display_lines(
        [line for key, letter in _asked(words, plain) for line in _lines(letter, plain[key], now[key], lang)]
    )


def _lines(letter: str, before: Any, now: Any, lang: str) -> Iterator[str]:
    """Yield an array and, unless it stays, what it becomes: below each other, since a telephone is narrow."""
    known, new = _shown(before), _shown(now)
    if known == new:
        yield f"{letter} = {known} {UNCHANGED.said(lang)}"
    elif np.ndim(before) == 0:
        yield rf"{letter} = {known} \; \to \; {new}"
    else:
        yield from (f"{letter} = {known}", rf"\quad \to \; {new}")


def _asked(words: tuple[str, ...], there: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for word in words:
        if "=" not in word:
            if word not in there:
                raise ByhandError(f"the example has no array {word!r}. Use one of {', '.join(there)}.")
            yield word, letter_of(word)


def _arrays(lesson: Any) -> Iterator[tuple[str, Any]]:
    return ((array.name, array.data) for step in lesson.steps for array in (*step.inputs, *step.arrays))


def _shown(data: Any) -> str:
    rows = np.asarray(data, dtype=float)
    return r",\; ".join(map(_shown, rows)) if rows.ndim > 2 else matrix_of(rows)
