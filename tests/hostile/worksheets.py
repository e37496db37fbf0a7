"""Filled-in worksheets: damaged sheets, answers of any length and nesting, strange numbers of questions."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from random import Random

from byhand.book.practice.grading import find_sheet, grade, read_answers
from byhand.book.practice.sheet_pages import markdown
from byhand.book.practice.sheets import TOPICS, Sheet, make
from byhand.cli.learn.grade import _lines
from hostile.outcome import accepted
from hostile.words import damaged, hostile


@cache
def sheet_of(topic: str) -> Sheet:
    return make(topic, 1)


@cache
def key_of(topic: str) -> str:
    return markdown(sheet_of(topic), "en", True)


def attack(seed: int, folder: Path) -> None:
    rng = Random(seed)
    topic = rng.choice(list(TOPICS))
    sheet = sheet_of(topic)
    if rng.random() < 0.4:
        content = damaged(rng, key_of(topic))
    else:
        numbers = list(sheet.questions())
        content = "\n".join(
            f"{rng.choice((rng.choice(numbers), rng.choice(numbers), hostile(rng)))} = {_answer(rng)}"
            for _ in range(rng.randrange(1, 12))
        )
    lang = rng.choice(("en", "zh"))

    def attempt() -> None:
        find_sheet(content)
        graded = grade(sheet, read_answers(content))
        assert 0 <= graded.right <= graded.asked
        assert all(math.isfinite(a.question.value) for step in graded.steps for a in step.answers)
        lines = _lines(graded, lang)
        assert max(map(len, lines)) < 1000
        assert "\x1b" not in "".join(lines)
        graded.as_json(lang)

    accepted(content, attempt)


def _answer(rng: Random) -> str:
    return rng.choice((hostile, lambda r: damaged(r, "(1/3 + sqrt(2)) * 10**2 - exp(-1)/pi")))(rng)
