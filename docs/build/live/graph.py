"""The graph of a lesson: the arrays of its passes, forward and back, and how each of their numbers is made.

Whether a gradient has an addend, and which array is read where, is taken from the lesson worked with numbers in
general position: none is 0, or equal to another, by chance. The numbers are those of the lesson itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Self

import numpy as np

from byhand.book.lessons.lesson import Lesson
from byhand.book.lessons.naming import leading
from live.program import Program
from live.settings import Slider, slider


@dataclass
class Numbered:
    """An array of the graph, its numbers in one row, from the cell `first` on.

    name      as the lesson calls it; "" for one that the forward pass keeps
    is_free   whether it is given and may be any real numbers: no token ids, and no zeros that stand for nothing yet
    programs  how its numbers are made; none for a given array
    label     as the lesson's labels of its numbers call it
    slider    how far a single number may be moved, and what it is
    """

    name: str
    data: np.ndarray
    first: int
    is_free: bool = False
    programs: list[Program] = field(default_factory=list)
    label: str = ""
    slider: Slider | None = None

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
    """A single number, and its gradient with respect to each array that has one."""

    array: int
    gradients: dict[int, int]


@dataclass(frozen=True)
class Switch:
    """A number that chooses between forms of the arithmetic, and for each of its values the programs of cells."""

    array: int
    programs: dict[float, dict[int, Program | None]]

    @classmethod
    def of(cls, array: int, forms: Mapping[float, Sequence[Program | None]]) -> Self:
        """Return the choice between the programs of all cells; only those that differ are kept."""
        differ = [cell for cell, programs in enumerate(zip(*forms.values(), strict=True)) if len(set(programs)) > 1]
        return cls(array, {value: {cell: programs[cell] for cell in differ} for value, programs in forms.items()})


@dataclass
class LessonGraph:
    """A lesson as arrays in the order of computation, what its steps read and make, its losses and switches."""

    lesson: Lesson
    arrays: list[Numbered] = field(default_factory=list)
    links: list[StepLink] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    switches: list[Switch] = field(default_factory=list)

    @property
    def numbers(self) -> list[float]:
        """All numbers, as the lesson's passes computed them."""
        return list(chain.from_iterable(array.numbers for array in self.arrays))

    @property
    def programs(self) -> list[Program | None]:
        """How each of them is made."""
        return list(chain.from_iterable(array.programs or [None] * array.data.size for array in self.arrays))

    def add(self, name: str, data: Any, known: Slider | None = None) -> int:
        """Append a given array, and return its place."""
        first = self.arrays[-1].first + self.arrays[-1].data.size if self.arrays else 0
        array = Numbered(name, np.asarray(data), first, slider=known)
        array.is_free = array.data.dtype.kind == "f" and bool(name and np.any(data))
        if known:
            array.label = known.letter
        elif not array.data.ndim:
            array.slider = slider(name, float(array.data))
        self.arrays.append(array)
        return len(self.arrays) - 1
