"""Names the mistake behind a port's numbers, from the table that `docs/build/port.py` computes. No model is run.

A number is right if it is within 1e-5 of the right one, and a mistake's if within 1e-4 of that: float32 keeps the
first, and with most mistakes the second. What is printed with few digits agrees within half a unit of its last.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

from byhand.book.words.language import Words

TABLE = Path(__file__).with_name("table.json")
NAMES = (
    Words("loss", "损失"),
    Words("gradient norm", "梯度范数"),
    Words("loss after one update", "更新一次后的损失"),
    Words("loss after two updates", "更新两次后的损失"),
    Words("first loss with 800 added to the head's bias", "输出层偏置加 800 时的首个损失"),
    Words("first loss with 800 added to the keys' biases", "键的偏置加 800 时的首个损失"),
)
FOUR = 4  # numbers that name a mistake; the others show a forgotten maximum
RIGHT = (1e-5,) * FOUR + (1e-4,) * 2  # what a right port in float32 may differ by
ALIKE = 1e-4  # what one with a mistake may
CLEARLY = 3  # times the best match's difference: what is farther does not count
SHOWN, FOR_PAIRS = 5, 3  # mistakes to list; numbers that two mistakes together are looked up by


@dataclass(frozen=True, slots=True)
class Known(Words):
    """A mistake of the table: in words, the function that it is in, the numbers that it leads to."""

    where: str
    numbers: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """The page's numbers, the mistakes, and by their places what two together lead to."""

    right: tuple[float, ...]
    mistakes: tuple[Known, ...]
    rows: tuple[str, ...]

    def pairs(self) -> Iterator[tuple[int, int, Sequence[float]]]:
        """Yield the places of two mistakes, and the four numbers of both; NaN if both change the same text."""
        both = combinations(range(len(self.mistakes)), 2)
        for i, row in enumerate(self.rows):
            numbers = array("f", base64.b64decode(row))
            if sys.byteorder == "big":
                numbers.byteswap()
            for k in range(len(self.mistakes) - 1 - i):
                yield *next(both), numbers[FOUR * k : FOUR * k + FOUR]


@dataclass(frozen=True, slots=True)
class Printed:
    """A number that a port printed, and what it may differ by, relatively."""

    value: float
    unit: float  # half of that of its last digit, relatively

    @classmethod
    def of(cls, word: str) -> Printed:
        """Read a printed number; ValueError if it is none."""
        value = float(word)
        digits, _, power = word.lower().partition("e")
        unit = 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2])) if math.isfinite(value) else 0.0
        return cls(value, unit / abs(value) if value else math.inf)

    def off(self, other: float) -> float:
        """Return the relative difference to a number of the table; infinite if only one of them is finite."""
        if math.isfinite(self.value) != math.isfinite(other):
            return math.inf
        return abs(self.value - other) / abs(other) if math.isfinite(other) else 0.0

    def agrees(self, other: float, within: float) -> bool:
        """Return whether the number is another, as far as it is printed."""
        return self.off(other) <= max(within, self.unit)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a port's numbers say.

    first    place of the first number that is wrong; None if all are right
    matches  the mistakes, each a tuple of one or two, that lead to all of the numbers
    nearest  otherwise the mistake that comes closest, and by how much the number differs that differs most
    """

    given: tuple[Printed, ...]
    right: tuple[float, ...]
    first: int | None = None
    matches: tuple[tuple[Known, ...], ...] = ()
    nearest: Known | None = None
    off: float = 0.0

    @property
    def next(self) -> int | None:
        """The place of the number to print next: it tells more; None if it would not."""
        wanted = self.first is None or (len(self.matches) != 1 and len(self.given) < FOUR)
        return len(self.given) if wanted and len(self.given) < len(self.right) else None


@cache
def table(model: str = "gpt") -> Fingerprints:
    """Return the table of one of the page's models; only the first has pairs."""
    says = json.loads(TABLE.read_text(encoding="utf-8"))
    known = (Known(en, zh, where, _read(of[model])) for en, zh, where, of, _ in says["mistakes"] if model in of)
    return Fingerprints(tuple(says["right"][model]), tuple(known), tuple(says["pairs"]) if model == "gpt" else ())


def _read(numbers: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(math.nan if x is None else x for x in numbers)


def named(given: Sequence[Printed], known: Fingerprints) -> Diagnosis:
    """Return what these numbers say: as many of `NAMES` as there are."""
    wrong = (
        i for i, (one, right) in enumerate(zip(given, known.right, strict=False)) if not one.agrees(right, RIGHT[i])
    )
    first, given = next(wrong, None), tuple(given)
    if first is None:
        return Diagnosis(given, known.right)
    nearest = min(known.mistakes, key=lambda m: _off(given, m.numbers))
    matches: list[tuple[float, tuple[Known, ...]]] = [
        (_off(given, m.numbers), (m,)) for m in known.mistakes if _agree(given, m.numbers)
    ]
    if len(given) >= FOR_PAIRS and min((off for off, _ in matches), default=1.0) > RIGHT[0]:
        four = given[:FOUR]
        for i, k, numbers in known.pairs():
            if numbers[0] == numbers[0] and _agree(four, numbers):
                matches.append((_off(four, numbers), (known.mistakes[i], known.mistakes[k])))
    within = max(RIGHT[0], CLEARLY * min((off for off, _ in matches), default=0.0), *(one.unit for one in given))
    ordered = tuple(found for off, found in sorted(matches, key=lambda match: match[0]) if off <= within)
    return Diagnosis(given, known.right, first, ordered, nearest, _off(given, nearest.numbers))


def _agree(given: Sequence[Printed], numbers: Sequence[float]) -> bool:
    return all(one.agrees(other, ALIKE) for one, other in zip(given, numbers, strict=False))


def _off(given: Sequence[Printed], numbers: Sequence[float]) -> float:
    return max(one.off(other) for one, other in zip(given, numbers, strict=False))
