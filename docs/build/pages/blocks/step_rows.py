"""The rows of a step: a few elements worth doing with their arithmetic, the others folded away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from byhand.book.lessons.lesson import Number, Step
from byhand.book.lessons.text import worked
from byhand.book.practice.selection import first_and_telling, first_of_each
from byhand.book.words.language import Words, say
from pages.blocks.arrays import quiet
from pages.blocks.markdown import table

ALL = 6  # numbers of a step that are worth showing all
FEW = 3  # other numbers that are not worth folding away
MOST = 30  # numbers that are worth folding
OTHERS = Words("The other {n} numbers", "其余 {n} 个数")
AGAIN = Words("{n} numbers, worked as before", "{n} 个数，算法同前")
SAME_WAY = Words("The other {n} numbers go the same way.", "其余 {n} 个数，算法相同。")
READ = Words("The numbers put in", "代入的数")


def worked_rows(step: Step, lang: str) -> Iterator[str]:
    """Yield a few elements with their arithmetic, and the others folded away."""
    worth = [n for n in step.numbers if list(worked(n))]
    best = step.numbers if len(step.numbers) <= ALL else first_and_telling(step)
    chosen = [n for n in worth if n in best]
    rest = [n for n in worth if n not in best and not _is_nothing(n)]
    if len(rest) <= FEW:
        chosen, rest = [n for n in worth if n in chosen or n in rest], []
    if chosen:
        yield rows_of(chosen, lang)
    if rest:
        those = Words(
            f"The other {len(rest)} numbers that take arithmetic (all the rest are copied or 0)",
            f"其余 {len(rest)} 个要算的数（此外都是照抄或 0）",
        )
        others = OTHERS if len(worth) == len(step.numbers) == len(chosen) + len(rest) else those
        yield _folded(others.said(lang, n=len(rest)), rows_of(rest, lang))


def few_rows(step: Step, lang: str, is_known: bool, parts: list[str]) -> Iterator[str]:
    """Yield one element of each result with its arithmetic, none if it is known; folded, parts and other elements."""
    worth = [n for n in step.numbers if list(worked(n))]
    best = () if is_known else first_of_each(step)
    best = first_and_telling(step) if len(best) == 1 or not (best or is_known) else best
    first = [n for n in worth if n in best]
    rest = [n for n in worth if n not in first and not _is_nothing(n)]
    if len(rest) == 1:
        first, rest = first + rest, []
    if first:
        yield rows_of(first, lang)
    many = len(rest)
    if many > MOST:
        yield SAME_WAY.said(lang, n=many)
    shown = [rows_of(rest, lang)] if 0 < many <= MOST else []
    if parts or shown:
        summary = (OTHERS if first else AGAIN).said(lang, n=many) if shown else READ.said(lang)
        yield _folded(summary, "\n\n".join([*parts, *shown]))


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


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
