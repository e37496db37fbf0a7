"""Arithmetic as data: a term as a short program of registers.

A cell is a number with a place in one row of all numbers of a lesson. A program's registers are the cells that it
reads, then its constants, then one for each operation; the last one is its value. Elements of one array mostly share
their form and differ in what they read, so a form is written once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from byhand.engine.terms import Term, below

Operation = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Form:
    """A program without its cells: how many it reads, its constants, its operations, which registers have a label."""

    reads: int
    constants: tuple[float, ...]
    operations: tuple[Operation, ...]
    labels: tuple[tuple[int, str], ...] = ()

    @property
    def named(self) -> list[int]:
        """The registers of labelled parts: not of the whole, nor of the largest number that softmax subtracts."""
        first = self.reads + len(self.constants)
        last = first + len(self.operations) - 1
        return [at for at, _ in self.labels if at < last and self.operations[at - first][0] != "max"]

    def as_json(self) -> list[Any]:
        """Return plain values, ready for JSON."""
        operations = [[op, *places] for op, places in self.operations]
        return [self.reads, list(self.constants), operations, dict(self.labels)]


@dataclass(frozen=True, slots=True)
class Program:
    """How one number is made: a form, and the cells that it reads."""

    form: Form
    cells: tuple[int, ...]

    @classmethod
    def of(cls, term: Term, cell: Callable[[Term], int | None], named: Callable[[str], str] = str) -> Program:
        """Return a term as a program; `cell` says where a leaf is read, None for a constant; `named` writes labels."""
        parts = list(below(term))
        at = {id(part): cell(part) for part in parts if not part.parts and not part.op}
        cells = list(dict.fromkeys(place for place in at.values() if place is not None))
        constants = list(dict.fromkeys(p.value for p in parts if id(p) in at and at[id(p)] is None))
        registers: dict[int, int] = {}
        known: dict[Operation, int] = {}
        labels: dict[int, str] = {}
        for part in parts:
            if id(part) in at:
                place = at[id(part)]
                register = cells.index(place) if place is not None else len(cells) + constants.index(part.value)
            else:
                operation = part.op, tuple(registers[id(p)] for p in part.parts)
                register = known.setdefault(operation, len(cells) + len(constants) + len(known))
                if part.label:
                    labels[register] = named(part.label)
            registers[id(part)] = register
        form = Form(len(cells), tuple(constants), tuple(known), tuple(labels.items()))
        return cls(form, tuple(cells))
