"""Queries of `where`, answers of a quiz: formulas of every length and nesting."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

from byhand.book.finding.search import index, nearest, search
from byhand.book.lessons.lesson import Number
from byhand.book.numbers.closed_form import value
from byhand.book.practice.checking import check
from byhand.book.practice.edits import Mistake
from hostile.outcome import accepted
from hostile.words import damaged, hostile

QUERIES = ["causal mask", "-log p_y", "S_{b,i,j}", "P V", "层归一化的梯度", "nn::layernorm_lastdim", "λ"]
ANSWERS = ["0.33", "1/3", "sqrt(2)/2", "√2", "1/(1+exp(-1))", "-2^3", "ln 2", "1,5", "−∞", "e^2", "tanh(0.5)*pi"]
ASKED = Number("p", "1/3", 1 / 3, "1/3", (Mistake("you forgot a half", "忘了一半", 1 / 2),))


def attack(seed: int, folder: Path) -> None:
    rng = Random(seed)
    if rng.random() < 0.2:
        query = _query(rng)
        for match in accepted(query, lambda: search(query)) or ():
            assert match.finding.name in index().names
            assert 0 < match.score <= 1
        accepted(query, lambda: nearest(query))
        return
    for _ in range(10):
        answer = damaged(rng, rng.choice(ANSWERS)) if rng.random() < 0.7 else hostile(rng)
        verdict = accepted(answer, lambda answer=answer: check(ASKED, answer))
        given = accepted(answer, lambda answer=answer: value(answer))
        if given is not None:
            assert not math.isnan(given), answer
            assert verdict is not None, f"{answer!r} is {given}, but no answer"


def _query(rng: Random) -> str:
    if rng.random() < 0.3:
        return hostile(rng)
    formulas = [e.latex for e in index().findings() if e.latex]
    return damaged(rng, rng.choice((rng.choice(QUERIES), rng.choice(formulas))))
