"""The catalogue of mistakes, `mistakes.toml`: quizzes, worksheets, ports, `byhand break` and `tests/bite.py` read it.

A mistake of programs is one substitution in an equation's half, or in the wiring. `planting.py` makes it.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from byhand.book.practice.edits import Edit, Slips
from byhand.book.words.language import Words

WIRING = "wiring"


@dataclass(frozen=True)
class Planted(Words):
    """A mistake in words, and as code.

    name   that of the equation, or "wiring", and its own: "layer_norm.no_gain"
    where  the function: "layer_norm.vjp", the half of an equation, or "module:qualified name"
    old    a text that stands there once or more
    new    the wrong text in its place
    """

    name: str
    where: str
    old: str
    new: str


@cache
def rows() -> dict[str, dict[str, list[str]]]:
    """Return the tables of the file: a mistake's words, and its code if it has any, by its name."""
    return tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text(encoding="utf-8"))


@cache
def catalogue() -> tuple[Planted, ...]:
    """Return every mistake of programs: those of the equations, in the order of the entries, then those of the wiring."""
    found = []
    for half, mistakes in rows().items():
        for name, (en, zh, *code) in mistakes.items():
            if code:
                where = () if half == WIRING else (half,)
                found.append(Planted(en, zh, f"{half.partition('.')[0]}.{name}", *where, *code))
    return tuple(found)


def slips(half: str, **edits: Edit) -> Slips:
    """Return mistakes of an equation's half, by name, with the edits that make them of one element's term."""
    return tuple((rows()[half][name][0], rows()[half][name][1], edit) for name, edit in edits.items())
