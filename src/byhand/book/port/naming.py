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
    Words("first loss with 800 added to the head's bias", "语言模型头偏置加 800 时的首个损失"),
    Words("first loss with 800 added to the keys' biases", "键的偏置加 800 时的首个损失"),
)
FOUR = 4  # numbers that name a mistake, or two together; the others show a forgotten maximum
RIGHT = (1e-5,) * FOUR + (1e-4,) * 2  # what a port in float32 may differ by, whether right or with a mistake
SMALL = 1e-2  # the error of a smaller loss does not shrink with it
NEAR = 2e-3  # what is farther away has nothing in common
SHOWN = 5  # mistakes to list
EXACT = ("0", "0.0")  # what C's %.9g and Python print of a zero
DIGITS = 5e-6  # half of the sixth significant digit: with fewer, too much is alike


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
    """A number that a port printed."""

    value: float
    unit: float  # half of that of its last digit

    @classmethod
    def of(cls, word: str) -> Printed:
        """Read a printed number; ValueError if it is none."""
        value = float(word)
        digits, _, power = word.lower().partition("e")
        is_exact = not math.isfinite(value) or digits.strip(" +-") in EXACT
        return cls(value, 0.0 if is_exact else 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2])))

    def off(self, other: float | None) -> float:
        """Return the relative difference to a number of the table; None is any finite one."""
        if other is None:
            return 0.0 if math.isfinite(self.value) else math.inf
        return apart(self.value, other)

    def agrees(self, other: float | None, within: float) -> bool:
        """Return whether the number is another, as far as it is printed."""
        return self.off(other) <= self.slack(other, within)

    def slack(self, other: float | None, within: float) -> float:
        """Return what it may differ by from another number, relatively: `within`, or what its digits leave open."""
        return max(within, self.unit / _scale(other)) if other is not None and math.isfinite(other) else within


def _scale(number: float) -> float:
    return max(abs(number), SMALL)


def apart(one: float, other: float) -> float:
    """Return the relative difference to another number, or to `SMALL`; infinite if only one of them is finite."""
    if math.isfinite(one) != math.isfinite(other):
        return math.inf
    return abs(one - other) / _scale(other) if math.isfinite(other) else 0.0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a port's numbers say.

    first    place of the first number that is wrong; None if all are right
    matches  the mistakes, each a tuple of one or two, that lead to the most numbers from the first on
    fits     how many numbers those are
    nearest  without matches, the mistake that first shows in the same number and comes closest
    off      by how much its number differs that differs most
    """

    given: tuple[Printed, ...]
    right: tuple[float, ...]
    first: int | None = None
    matches: tuple[tuple[Known, ...], ...] = ()
    fits: int = 0
    nearest: Known | None = None
    off: float = 0.0

    @property
    def few_digits(self) -> bool:
        """Whether a number is printed with fewer than six significant digits."""
        return any(one.unit > DIGITS * abs(one.value) for one in self.given)

    @property
    def by_chance(self) -> bool:
        """Whether one wrong number alone matches, and others would tell more."""
        wrong = [i for i in range(self.fits) if not self.given[i].agrees(self.right[i], RIGHT[i])]
        return bool(self.matches) and len(wrong) == 1 and self.fits < FOUR

    @property
    def next(self) -> int | None:
        """The place of the number to print next: it tells more; None if it would not."""
        named = len(self.matches) == 1 and self.fits == len(self.given) and not self.by_chance
        wanted = self.first is None or (not named and len(self.given) < FOUR)
        return len(self.given) if wanted and len(self.given) < len(self.right) else None


@cache
def table(model: str = "gpt") -> Fingerprints:
    """Return the table of one of the page's models; only the first has pairs."""
    says = json.loads(TABLE.read_text(encoding="utf-8"))
    known = (Known(en, zh, where, _read(of[model])) for en, zh, where, _, of in says["mistakes"] if model in of)
    return Fingerprints(tuple(says["right"][model]), tuple(known), tuple(says["pairs"]) if model == "gpt" else ())


def _read(numbers: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(math.nan if x is None else x for x in numbers)


def named(given: Sequence[Printed], known: Fingerprints) -> Diagnosis:
    """Return what these numbers say: as many of `NAMES` as there are."""
    given, right = tuple(given), known.right
    first = next((i for i, one in enumerate(given) if not one.agrees(right[i], RIGHT[i])), None)
    if first is None:
        return Diagnosis(given, right)
    found: list[tuple[int, int, float, tuple[Known, ...]]] = []
    for of, numbers in _led_to(known, given, first):
        fits = _fitting(given, numbers, right)
        if fits > first and (len(of) == 1 or fits >= FOUR):
            found.append((-fits, len(of), _off(given[:fits], numbers), of))
    if found:
        # The more numbers they lead to the better; then one mistake before two; then the closest.
        found.sort(key=lambda match: match[:3])
        alike = tuple(match[3] for match in found if match[:2] == found[0][:2])
        return Diagnosis(given, right, first, alike, -found[0][0])
    exact = [Printed(number, 0.0) for number in right]
    beside = [m for m in known.mistakes if _fitting(exact, m.numbers, right) == first]
    nearest = min(beside, key=lambda m: _off(given, m.numbers), default=None)
    return Diagnosis(given, right, first, nearest=nearest, off=_off(given, nearest.numbers) if nearest else math.inf)


def _led_to(
    known: Fingerprints, given: Sequence[Printed], first: int
) -> Iterator[tuple[tuple[Known, ...], Sequence[float | None]]]:
    """Yield the mistakes, and two that lead to the first wrong number if enough are given, with what they lead to."""
    place = min(first, FOUR - 1)
    yield from (((mistake,), mistake.numbers) for mistake in known.mistakes)
    for i, k, numbers in known.pairs() if len(given) >= FOUR else ():
        if numbers[0] == numbers[0] and given[place].agrees(numbers[place], RIGHT[place]):
            both = known.mistakes[i], known.mistakes[k]
            yield both, numbers if len(given) == FOUR else (*numbers, *_far(both, numbers[0]))


def _far(both: tuple[Known, Known], loss: float) -> Iterator[float | None]:
    """Yield what two mistakes make of the numbers with 800: the loss, NaN, or a number that the table lacks."""
    for i in range(FOUR, len(both[0].numbers)):
        if not all(math.isfinite(one.numbers[i]) for one in both):
            yield math.nan
        else:
            yield loss if all(apart(one.numbers[i], one.numbers[0]) <= RIGHT[i] for one in both) else None


def _fitting(given: Sequence[Printed], numbers: Sequence[float | None], right: Sequence[float]) -> int:
    """Return how many of the numbers, from the first on, are those; what is right does not explain what is wrong."""
    for i, (one, number) in enumerate(zip(given, numbers, strict=False)):
        harmless = number is not None and apart(number, right[i]) <= one.slack(right[i], RIGHT[i])
        if not one.agrees(number, RIGHT[i]) or (harmless and not one.agrees(right[i], RIGHT[i])):
            return i
    return len(given)


def _off(given: Sequence[Printed], numbers: Sequence[float | None]) -> float:
    return max(one.off(other) for one, other in zip(given, numbers, strict=False))
