"""The rows of a step: a few elements worth doing with their arithmetic, the others folded away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from byhand.book.lessons.lesson import Number, Step
from byhand.book.lessons.text import worked
from byhand.book.practice.selection import first_and_telling
from byhand.book.words.language import Words, say
from pages.blocks.arrays import quiet
from pages.blocks.markdown import table

ALL = 6  # numbers of a step that are worth showing all
FEW = 3  # other numbers that are not worth folding away


def worked_rows(step: Step, lang: str, few: bool) -> Iterator[str]:
    """Yield a few elements with their arithmetic and the others folded away, or with `few` only their count."""
    worth = [n for n in step.numbers if list(worked(n))]
    best = step.numbers if len(step.numbers) <= ALL else first_and_telling(step)
    chosen = [n for n in worth if n in best]
    rest = [n for n in worth if n not in best and not _is_nothing(n)]
    if len(rest) <= FEW and not few:
        chosen, rest = [n for n in worth if n in chosen or n in rest], []
    if chosen:
        yield rows_of(chosen, lang)
    if rest and few:
        yield Words(
            f"The other {len(rest)} numbers that take arithmetic go the same way.",
            f"其余 {len(rest)} 个要计算的数，算法相同。",
        ).said(lang)
    elif rest:
        others = Words(f"The other {len(rest)} numbers", f"其余 {len(rest)} 个数")
        those = Words(
            f"The other {len(rest)} numbers that take arithmetic (all the rest are copied or 0)",
            f"其余 {len(rest)} 个要算的数（此外都是照抄或 0）",
        )
        summary = (others if len(worth) == len(step.numbers) == len(chosen) + len(rest) else those).said(lang)
        yield f"<details><summary>{summary}</summary>\n\n{rows_of(rest, lang)}\n\n</details>"


def _is_nothing(number: Number) -> bool:
    """Return whether a number is 0 because all that it is made of is 0, or a sum with 0 alone."""
    text = say(number.expression, "en")
    if re.fullmatch(r"[^ (]+ [+−] 0|0 \+ [^ (]+", text):
        return True
    zero = r"\(?−?0(?: [+−] 0)*\)?"
    return number.value == 0 and bool(re.fullmatch(rf"{zero}|.* × {zero}|{zero} [×/] .*", text))


def rows_of(numbers: Iterable[Number], lang: str) -> str:
    """Return the table of these numbers: each with its arithmetic and value."""
    return table(Words("Number|Arithmetic|Value", "数|算式|值"), (_row(number, lang) for number in numbers), lang)


def _row(number: Number, lang: str) -> list[str]:
    arithmetic = " = ".join(worked(number, lang)) or say(number.expression, lang)
    said = (say(number.label, lang), arithmetic, number.shown)
    return [f"`{quiet(text)}`".replace("|", "\\|") for text in said]
