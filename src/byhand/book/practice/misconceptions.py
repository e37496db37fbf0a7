"""Misconceptions: the wrong numbers that known wrong turns lead to, for one element at a time.

A wrong answer that equals one of them tells what went wrong, and `quiz` and `grade` say so. Nothing is typed: each is
computed from the same inputs as the right number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.book.practice.wrong_backward import BACKWARD
from byhand.book.practice.wrong_forward import FORWARD
from byhand.book.practice.wrong_turn import Arrays, WrongTurn
from byhand.engine.terms import Term


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong number and what leads to it, in both languages."""

    value: float
    en: str
    zh: str


def forward_mistakes(stem: str, inputs: Arrays, index: tuple[int, ...], static: dict[str, Any]) -> list[Mistake]:
    """Return the wrong numbers for one element of an equation's (first) result."""
    return list(_at(FORWARD.get(stem, ()), index, inputs, **static))


def backward_mistakes(
    stem: str, inputs: Arrays, d_result: np.ndarray, slot: int, index: tuple[int, ...], static: dict[str, Any]
) -> list[Mistake]:
    """Return the wrong numbers for one element of the gradient of input number `slot`."""
    kept = {k: v for k, v in static.items() if k == "eps"} if stem == "layer_norm" else {}
    return list(_at(BACKWARD.get(stem, ()), index, inputs, d_result, slot, **kept))


def label_mistakes(term: Term) -> list[Mistake]:
    """Return the wrong numbers for a labelled part, such as a mean or a variance."""
    if term.op == "ratio" and term.label in ("mean", "var"):
        above, count = (part.value for part in term.parts)
        found = [Mistake(above, "forgot to divide by C: that is the sum", "忘了除以 C：那是总和")]
        if term.label == "var" and count > 1:
            found.append(Mistake(above / (count - 1), "divided by C − 1 instead of C", "除以了 C − 1，而不是 C"))
            found.append(Mistake(math.sqrt(max(0.0, term.value)), "took the root already", "已经开了方"))
        return found
    if term.op == "ratio" and term.label in ("mhat", "vhat"):
        return [Mistake(term.parts[0].value, "forgot the bias correction", "忘了偏差修正")]
    return []


def _at(turns: tuple[WrongTurn, ...], index: tuple[int, ...], *arguments: Any, **static: Any) -> Iterator[Mistake]:
    with np.errstate(all="ignore"):
        for turn in turns:
            array = turn.compute(*arguments, **static)
            if array is None:
                continue
            value = float(np.asarray(array)[index]) if np.ndim(array) else float(array)
            if not math.isnan(value):
                yield Mistake(value, turn.en, turn.zh)
