"""Worksheets: exercises drawn from a seed, with numbers that come out clean enough for paper.

Each topic is one file: `draw(picker)` returns what is given, and the steps. Same topic and seed, same sheet, on every
machine and Python.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from byhand.book.lessons.lesson import Number, Step
from byhand.book.words.language import Words
from byhand.errors import ByhandError, suggestion

Item = TypeVar("Item")
Given = tuple[tuple[str, Any], ...]
Drawn = tuple[Given, tuple[Step, ...]]
NONZERO = (-2, -1, 1, 2)  # for factors: a product with 0 tests nothing
NOTHING = 1e-9  # a smaller answer is a rounded 0
MOST_ZEROS = 0.2  # of a sheet's answers: zeros test little
LARGEST_SEED = 10**18  # the sheet's file name holds the seed

TOPICS = {
    "attention": Words("Causal attention with one head", "单头因果注意力"),
    "cross-entropy": Words("Softmax, cross-entropy and its gradient", "softmax、交叉熵及其梯度"),
    "layer-norm": Words("LayerNorm and its derivative", "层归一化及其导数"),
    "backprop": Words("Backpropagation through two layers", "两层网络的反向传播"),
    "adamw": Words("Two steps of AdamW", "AdamW 的两步"),
    "full": Words("A whole GPT, from tokens to the loss", "完整的 GPT：从词元到损失"),
}


@dataclass(frozen=True)
class Sheet:
    """The given numbers, by name and as people write them, and the steps that ask for numbers.

    Questions are numbered `step.number` from 1.
    """

    topic: str
    seed: int
    given: Given
    steps: tuple[Step, ...]

    @property
    def title(self) -> Words:
        """The topic's title."""
        return TOPICS[self.topic]

    def questions(self) -> dict[str, Number]:
        """Return the questions, by number such as `2.3`."""
        return {f"{i}.{j}": n for i, s in enumerate(self.steps, 1) for j, n in enumerate(s.numbers, 1)}


class Picker:
    """Draws from a seed, by `random.random` alone, whose sequence Python promises to keep."""

    def __init__(self, topic: str, seed: int) -> None:
        self._random = random.Random(f"{topic} {seed}")

    def one(self, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        return items[int(self._random.random() * len(items))]

    def several(self, items: Sequence[Item], *shape: int) -> Any:
        """Return nested lists of the items."""
        return [self.several(items, *shape[1:]) for _ in range(shape[0])] if shape else self.one(items)

    def integers(self, low: int, high: int, *shape: int) -> Any:
        """Return nested lists of integers from low to high, both included."""
        return self.several(range(low, high + 1), *shape)


def make(topic: str, seed: int) -> Sheet:
    """Return the sheet of a topic and seed; ByhandError for an unknown topic, or a seed out of range."""
    if topic not in TOPICS:
        raise ByhandError(f"there is no topic {topic[:80]!r}. {suggestion(topic[:80], TOPICS)}")
    if not 0 <= seed < LARGEST_SEED:
        raise ByhandError(f"the seed must be 0 or more, and less than {LARGEST_SEED:.0e}. Use --seed 7.")
    with np.errstate(all="ignore"):
        draw = import_module(f"byhand.book.practice.sheets.{topic.replace('-', '_')}").draw
        picker = Picker(topic, seed)
        while zeros(sheet := Sheet(topic, seed, *draw(picker))) > MOST_ZEROS:
            pass  # the next draw continues the picker's sequence, so it differs
    return sheet


def zeros(sheet: Sheet) -> float:
    """Return the share of a sheet's answers that are 0."""
    answers = sheet.questions().values()
    return sum(abs(answer.value) < NOTHING for answer in answers) / len(answers)
