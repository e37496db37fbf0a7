"""One number of a real run as a picture: its place in its array, and the terms that add up to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import numpy as np

from byhand.book.explain.explanation import BEFORE, Explanation
from byhand.book.explain.text import WORDS, partial
from byhand.book.numbers.arithmetic import decimal, expression, letter
from byhand.book.pictures.canvas import SIZE, SMALL, TINY, WIDTH, text_width
from byhand.book.pictures.picture import drawn
from byhand.book.pictures.scene.cells import HEAT, Cells, Frame
from byhand.book.pictures.scene.elements import Key, Length, Sign, Space
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, heading
from byhand.book.words.language import Words, say
from byhand.tracing.elements import answer_name

MOST = 16  # rows and columns of an array that are shown
NUMBERED = 8  # columns that leave room for the numbers
LEFT, ROOM, ACROSS = 54, 334, WIDTH - 8  # pixels: of the rows' names, for columns, for a line
HIGH = 24  # pixels of a row
WINDOW = Words("{axis} {first} to {last} of {all}", "{axis} {first} 至 {last}，共 {all}")
ROWS, COLUMNS = Words("rows", "行"), Words("columns", "列")

Hidden = Callable[[int, int], bool]
Spelled = Callable[[int, int], str]  # the token that a place along an axis (counted from the front) stands for, or ""
Bar = tuple[str, float]  # its meaning and its value


def svg(
    explanation: Explanation,
    array: Any,
    lang: str,
    shown: int = 8,
    spell: Spelled = lambda axis, place: "",
    hidden: Hidden | None = None,
) -> str:
    """Return the picture of an explanation.

    array   the whole array of the number; only a window around the number is drawn
    shown   number of bars; one more sums the others
    hidden  tells which places of the array's last two axes a mask hides
    """
    title = partial(explanation.target)
    lines: list[Figure] = [_line(f"{title} = {decimal(explanation.value)}", bold=True)]
    known = ", ".join(listing.title.said(lang) for listing in explanation.known)
    if known:
        lines.append(_line(known))
    if np.ndim(array):
        lines += _map(explanation, np.asarray(array, dtype=float), spell, hidden, lang)
    heading_, bars = _parts(explanation, lang, shown)
    if bars:
        left = len(explanation.terms if heading_ is WORDS["terms"] else explanation.sources) - len(bars)
        if left and heading_ is WORDS["terms"]:
            bars.append((WORDS["rest"].said(lang, n=left), explanation.rest(shown)))
        lines += [Space(2), heading(heading_), *_bars(bars, lang)]
        if left and heading_ is WORDS["sources"]:
            lines.append(_line(WORDS["more"].said(lang, n=left)))
        if heading_ is WORDS["terms"]:
            end = WORDS["cancelled" if explanation.cancels else "sum"].said(lang)
            total = 0.0 if explanation.cancels or not explanation.term else explanation.term.value
            lines.append(_row(end, total, lang, bold=True))
    elif explanation.note:
        lines.append(Caption(explanation.note))
    return drawn(Column(lines, gap=3), lang).svg(title)


def _map(e: Explanation, array: np.ndarray, spell: Spelled, hidden: Hidden | None, lang: str) -> list[Figure]:
    """Return the plane of the last two axes round the number."""
    front, plane = len(e.index[:-2]), array[e.index[:-2]] if array.ndim > 1 else array[None]
    row, column = e.index[-2:] if array.ndim > 1 else (0, e.index[0])
    rows, columns = _window(row, plane.shape[0]), _window(column, plane.shape[1])
    name = partial(answer_name(e.name, (), e.gradient))
    place = "".join(f"{i}," for i in e.index[:-2])
    lines: list[Figure] = [_line(f"{name}[{place}{':,' if array.ndim > 1 else ''}:]")]
    for words, part, count in ((ROWS, rows, plane.shape[0]), (COLUMNS, columns, plane.shape[1])):
        if len(part) < count:
            said = WINDOW.said(lang, axis=words.said(lang), first=part[0], last=part[-1], all=count)
            lines.append(_line(said))
    wide = min(52.0, ROOM / len(columns))
    window = plane[rows.start : rows.stop, columns.start : columns.stop]
    step = ceil((max(text_width(str(j), TINY) for j in columns) + 4) / wide)

    def named(axis: int, place: int, pixels: float) -> str:
        spelled = spell(front + axis, place)
        both = f"{place} {spelled}" if spelled else str(place)
        return both if text_width(both, TINY) <= pixels else str(place)

    at = row - rows[0], column - columns[0]
    masked = [(i, j) for i in range(len(rows)) for j in range(len(columns)) if hidden and hidden(rows[i], columns[j])]
    cells = Cells(
        window.tolist(), HEAT, hidden=masked, frames=[Frame(at, at)], cell=(wide, HIGH), corner=LEFT, at="start",
        rows=[named(0, i, LEFT - 4) for i in rows] if array.ndim > 1 else (),
        columns=[named(1, j, wide - 2) if (j - column) % step == 0 else "" for j in columns],
        shown=len(columns) <= NUMBERED and wide >= 40,
    )  # fmt: skip
    lines.append(cells)
    finite = window[np.isfinite(window)]
    if finite.size:
        ends = min(0.0, float(finite.min())), max(0.0, float(finite.max()))
        lines += [Space(2), Key([Sign("", kind="scale", ends=ends)])]
    return lines


def _window(middle: int, count: int) -> range:
    """Return at most `MOST` places round one of them."""
    first = max(0, min(middle - MOST // 2, count - MOST))
    return range(first, min(count, first + MOST))


def _parts(e: Explanation, lang: str, shown: int) -> tuple[Words, list[Bar]]:
    """Return the first bars: the largest terms of a sum, or the numbers that the value is made from."""
    if len(e.terms) > 1:
        return WORDS["terms"], [(expression(t, letter), t.value) for t in e.terms[:shown]]
    name = [(s, s.target.replace(BEFORE.en, BEFORE.said(lang))) for s in e.sources[:shown]]
    return WORDS["sources"], [(f"{s.letter} = " * bool(s.letter) + partial(t), s.value) for s, t in name]


def _bars(bars: Sequence[Bar], lang: str) -> list[Figure]:
    """Return bars, each below its words."""
    values = [value for _, value in bars]
    low, high = min(0.0, *values), max(0.0, *values)
    return [line for words, value in bars for line in (_row(words, value, lang), Length(value, low, high))]


def _row(words: str, value: float, lang: str, bold: bool = False) -> Across:
    """Return words at the left and a number at the right."""
    number = decimal(value)
    room = ACROSS - text_width(number, SMALL) - 12
    said = fitted(say(words, lang), room, SMALL)
    return Across([Caption(said, bold), Caption(number, bold, at="end")], widths=(room, None))


def _line(words: str, bold: bool = False) -> Caption:
    """Return a line, cut if it is too long."""
    size = SIZE if bold else SMALL
    return Caption(fitted(words, ACROSS, size), bold, size)


def fitted(words: str, pixels: float, size: float) -> str:
    """Return words, without their middle if they do not fit."""
    kept = len(words)
    cut = words
    while text_width(cut, size) > pixels and kept:
        kept -= 1
        cut = f"{words[: kept - kept // 2]}…{words[len(words) - kept // 2 :]}"
    return cut
