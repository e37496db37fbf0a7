"""Checking an answer: right, wrong, or a typical mistake."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from byhand.book.lessons.lesson import Number
from byhand.book.numbers import closed_form
from byhand.book.numbers.closed_form import LONGEST, value
from byhand.book.practice.edits import Mistake
from byhand.book.words.language import Words
from byhand.errors import ByhandError

RELATIVE = 5e-3  # paper and pencil: three digits are enough
ROUNDED = 5.1e-4  # or three decimals
HOW = Words("write 0.33, 1/3 or sqrt(2)/2", "请写 0.33、1/3 或 sqrt(2)/2")
SIGNS = str.maketrans(
    {"−": "-", "–": "-", "×": "*", "·": "*", "÷": "/", "^": "**", "∞": "inf", "π": "pi", "。": ".", "\u3000": " "}
    | {"½": "(1/2)", "⅓": "(1/3)", "⅔": "(2/3)", "¼": "(1/4)", "¾": "(3/4)", "²": "**2", "³": "**3"}
)
FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
LABEL = re.compile(r".*[^\d\s)]\s*:")  # `y[0]:` before an answer; between two numbers a colon divides


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right, and the typical mistake that leads to it, if one does."""

    right: bool
    mistake: Mistake | None = None


def check(number: Number, answer: str) -> Verdict:
    """Judge an answer such as `0.33`, `1/3` or `sqrt(2)/2`; ByhandError if it is not a number."""
    given = parsed(answer)
    if agrees(given, number.value):
        return Verdict(True)
    near = _near(given, number.mistakes, number.value) or _near(given, _general(number), number.value)
    if not near and _is_rounded_too_far(tidy(answer), given, number.value):
        return Verdict(False, Mistake("rounded it too far: give three digits", "舍入过多：请保留三位有效数字", given))
    return Verdict(False, next(iter(near), None))


def parsed(answer: str) -> float:
    """Return an answer as a number; ByhandError if it is not one."""
    if len(answer) > LONGEST:
        raise ByhandError(f"{answer[:20]!r}… is not a number. {closed_form.HOW}")
    return value(tidy(answer))


def _near(given: float, mistakes: tuple[Mistake, ...], right: float) -> list[Mistake]:
    """Return the mistakes that lead to this answer, the nearest first; equally near ones stay in their order."""
    found = [m for m in mistakes if agrees(given, m.value) and not agrees(right, m.value)]
    return sorted(found, key=lambda m: float(f"{abs(m.value - given):.6f}"))


def agrees(given: float, right: float) -> bool:
    """Return whether a number is right to three digits or three decimals; for 0, whether it rounds to 0."""
    if not math.isfinite(right):
        return given == right
    if right == 0 or given == 0:
        return abs(given - right) <= ROUNDED / 10
    return abs(given - right) <= max(RELATIVE * abs(right), min(ROUNDED, 0.05 * abs(right)))


def _is_rounded_too_far(answer: str, given: float, right: float) -> bool:
    """Return whether the answer is the right number rounded to one or two digits."""
    written = re.fullmatch(r"-?(\d*)\.?(\d*)", answer)
    digits = len((written[1] + written[2]).lstrip("0")) if written else 0
    return 0 < digits < 3 and math.isfinite(right) and math.isclose(given, float(f"{right:.{digits}g}"))


def narrow(text: str) -> str:
    """Replace full-width characters of Chinese and Japanese keyboards (２．５ ＝ （ ）) by plain ones."""
    return text.translate(FULL_WIDTH)


def tidy(answer: str) -> str:
    """Return an answer as a closed form; it may have −, ×, ÷, √2, ½, ln, ^, ∞, 0,5, 1:3, or begin with `y[0] =`."""
    text = narrow(answer).rpartition("=")[2].translate(SIGNS).strip()
    text = LABEL.sub("", text, count=1).strip().replace(":", "/").removeprefix("+")
    text = re.sub(r"(?<=\d),(?=\d)", ".", text)
    text = re.sub(r"\bln\b", "log", text)
    text = re.sub(r"√\s*(\d+(?:\.\d+)?)", r"sqrt(\1)", text).replace("√", "sqrt")
    text = re.sub(r"(?<=\d)\s*(?=sqrt)", "*", text)
    return re.sub(r"(?<![\w.])e\s*\*\*", "exp(1)**", text)


def _general(number: Number) -> tuple[Mistake, ...]:
    """Return the mistakes that can happen with any number."""
    v = number.value
    reciprocal = (Mistake("that is the reciprocal", "取成了倒数", 1 / v),) if v else ()
    place = ("the decimal point is one place off", "小数点错了一位")
    return (
        Mistake("the sign is turned round", "正负号反了", -v),
        *reciprocal,
        Mistake(*place, v * 10),
        Mistake(*place, v / 10),
    )
