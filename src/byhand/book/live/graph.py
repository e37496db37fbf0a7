"""The graph of a lesson: the arrays of its passes, forward and back, and how each of their numbers is made.

Whether a gradient has an addend, and which array is read where, is taken from the lesson worked with numbers in
general position: none is 0, or equal to another, by chance. The numbers are those of the lesson itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from byhand.book.lessons.lesson import Lesson
from byhand.book.lessons.naming import leading
from byhand.book.live.program import Program


@dataclass
class Numbered:
    """An array of the graph, its numbers in one row, from the cell `first` on.

    name      as the lesson calls it; "" for one that the forward pass keeps
    is_free   whether it is given and may be any real numbers: no token ids, and no zeros that stand for nothing yet
    programs  how its numbers are made; none for a given array
    label     as the lesson's labels of its numbers call it
    """

    name: str
    data: np.ndarray
    first: int
    is_free: bool = False
    programs: list[Program] = field(default_factory=list)
    label: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape without leading axes of length 1."""
        return self.data.shape[leading(self.data.shape) :]

    @property
    def numbers(self) -> list[float]:
        """Its numbers as floats."""
        return np.asarray(self.data, dtype=np.float64).ravel().tolist()

    def cell(self, index: tuple[int, ...]) -> int:
        """Return the cell of an element, by its place in the whole array."""
        return self.first + (int(np.ravel_multi_index(index, self.data.shape)) if index else 0)


@dataclass(frozen=True)
class StepLink:
    """The arrays that a step of the lesson reads, with those that it keeps, and the arrays that it makes."""

    reads: tuple[int, ...] = ()
    makes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Loss:
    """A single number, and its gradient with respect to each array."""

    array: int
    gradients: dict[int, int]


@dataclass
class LessonGraph:
    """A lesson as arrays in the order of computation, what each of its steps reads and makes, and its losses."""

    lesson: Lesson
    arrays: list[Numbered] = field(default_factory=list)
    links: list[StepLink] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    @property
    def numbers(self) -> list[float]:
        """All numbers, as the lesson's passes computed them."""
        return list(chain.from_iterable(array.numbers for array in self.arrays))

    @property
    def programs(self) -> list[Program | None]:
        """How each of them is made."""
        return list(chain.from_iterable(array.programs or [None] * array.data.size for array in self.arrays))

    def add(self, name: str, data: Any) -> int:
        """Append a given array, and return its place."""
        array = Numbered(
            name, np.asarray(data), self.arrays[-1].first + self.arrays[-1].data.size if self.arrays else 0
        )
        array.is_free = array.data.dtype.kind == "f" and bool(name and np.any(data))
        self.arrays.append(array)
        return len(self.arrays) - 1
