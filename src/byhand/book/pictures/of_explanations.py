"""One number of a real run as a picture: its place in its array, and the terms that add up to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from byhand.book.explain.explanation import BEFORE, Explanation
from byhand.book.explain.text import WORDS
from byhand.book.numbers.arithmetic import decimal, expression, letter
from byhand.book.pictures.canvas import BLUE, LINE, RUST, SIZE, SMALL, TINY, Canvas, text_width
from byhand.book.pictures.heat import Hidden, heat, scale
from byhand.book.words.language import Said, Words, say
from byhand.tracing.elements import answer_name

MOST = 16  # rows and columns of an array that are shown
NUMBERED = 8  # columns that leave room for the numbers
LEFT, ROOM, EDGE = 58, 334, 4  # pixels: of the rows' names, for columns, at the sides
HIGH = 24  # pixels of a row
WINDOW = Words("{axis} {first} to {last} of {all}", "{axis} {first} 至 {last}，共 {all}")
ROWS, COLUMNS = Words("rows", "行"), Words("columns", "列")

Spelled = Callable[[int, int], str]  # the token that a place along an axis (counted from the front) stands for, or ""


@dataclass(frozen=True)
class Bar:
    """The meaning of a bar, and its value."""

    words: Said
    value: float


def svg(
    explanation: Explanation,
    array: Any,
    lang: str,
    shown: int = 8,
    spell: Spelled = lambda axis, place: "",
    hidden: Hidden | None = None,
) -> str:
    """Return the picture of an explanation.

    array   the whole array that the number belongs to; a window of it round the number is drawn
    shown   how many bars; the others are one more
    hidden  which places of the array's last two axes a mask hides
    """
    canvas = Canvas(lang)
    title = _partial(explanation.target)
    canvas.y = 2
    _line(canvas, f"{title} = {decimal(explanation.value)}", bold=True)
    known = ", ".join(listing.title.said(lang) for listing in explanation.known)
    if known:
        _line(canvas, known)
    if np.ndim(array):
        _map(canvas, explanation, np.asarray(array, dtype=float), spell, hidden)
    heading, bars = _parts(explanation, lang, shown)
    if bars:
        left = len(explanation.terms if heading is WORDS["terms"] else explanation.sources) - len(bars)
        if left and heading is WORDS["terms"]:
            bars.append(Bar(WORDS["rest"].said(lang, n=left), explanation.rest(shown)))
        _bars(canvas, heading, bars)
        if left and heading is WORDS["sources"]:
            _line(canvas, WORDS["more"].said(lang, n=left))
        if heading is WORDS["terms"]:
            end = WORDS["cancelled" if explanation.cancels else "sum"].said(lang)
            total = 0.0 if explanation.cancels or not explanation.term else explanation.term.value
            _row(canvas, end, total, bold=True)
            canvas.y += 6
    elif explanation.note:
        for words in _wrapped(explanation.note.said(lang), canvas.width - 2 * EDGE, lang):
            _line(canvas, words)
    canvas.y += 6
    return canvas.svg(title)


def _map(canvas: Canvas, e: Explanation, array: np.ndarray, spell: Spelled, hidden: Hidden | None) -> None:
    """Draw the plane of the last two axes round the number."""
    front, plane = len(e.index[:-2]), array[e.index[:-2]] if array.ndim > 1 else array[None]
    row, column = e.index[-2:] if array.ndim > 1 else (0, e.index[0])
    rows, columns = _window(row, plane.shape[0]), _window(column, plane.shape[1])
    name = _partial(answer_name(e.name, (), e.gradient))
    place = "".join(f"{i}," for i in e.index[:-2])
    _line(canvas, f"{name}[{place}{':,' if array.ndim > 1 else ''}:]")
    for words, part, count in ((ROWS, rows, plane.shape[0]), (COLUMNS, columns, plane.shape[1])):
        if len(part) < count:
            said = WINDOW.said(canvas.lang, axis=words.said(canvas.lang), first=part[0], last=part[-1], all=count)
            _line(canvas, said)
    wide = min(52.0, ROOM / len(columns))
    window = plane[rows.start : rows.stop, columns.start : columns.stop]
    numbers = len(columns) <= NUMBERED and wide >= 40

    step = ceil((max(text_width(str(j), TINY) for j in columns) + 4) / wide)

    def named(axis: int, place: int, pixels: float) -> str:
        spelled = spell(front + axis, place)
        both = f"{place} {spelled}" if spelled else str(place)
        return both if text_width(both, TINY) <= pixels else str(place)

    canvas.y += 20
    canvas.y = heat(
        canvas,
        LEFT,
        canvas.y,
        window.tolist(),
        cell=(wide, HIGH),
        rows_said=[named(0, i, LEFT - 8) for i in rows] if array.ndim > 1 else (),
        columns_said=[named(1, j, wide - 2) if (j - column) % step == 0 else "" for j in columns],
        hidden=(lambda i, j: hidden(rows[i], columns[j])) if hidden else None,
        marked=(row - rows[0], column - columns[0]),
        shown=(lambda value: _brief(value, wide)) if numbers else (lambda value: ""),
    )
    finite = window[np.isfinite(window)]
    if finite.size:
        canvas.y += 12
        scale(canvas, LEFT + 52, canvas.y, min(0.0, float(finite.min())), max(0.0, float(finite.max())))
        canvas.y += 14
    canvas.y += 8


def _window(middle: int, count: int) -> range:
    """Return at most `MOST` places round one of them."""
    first = max(0, min(middle - MOST // 2, count - MOST))
    return range(first, min(count, first + MOST))


def _brief(value: float, pixels: float) -> str:
    """Write a number with three digits, or with fewer if they do not fit."""
    written = [decimal(value, digits) for digits in (3, 2, 1)]
    return next(
        (words for words in written if text_width(words, TINY) < pixels - 2),
        f"{value:.0e}".replace("e-0", "e−").replace("e+0", "e"),
    )


def _parts(e: Explanation, lang: str, shown: int) -> tuple[Words, list[Bar]]:
    """Return the first bars: the largest terms of a sum, or the numbers that the value is made from."""
    if len(e.terms) > 1:
        return WORDS["terms"], [Bar(expression(t, letter), t.value) for t in e.terms[:shown]]
    name = [(s, s.target.replace(BEFORE.en, BEFORE.said(lang))) for s in e.sources[:shown]]
    return WORDS["sources"], [
        Bar(f"{s.letter} = {_partial(t)}" if s.letter else _partial(t), s.value) for s, t in name
    ]


def _bars(canvas: Canvas, heading: Words, bars: Sequence[Bar]) -> None:
    """Draw bars below a heading."""
    canvas.heading(heading)
    values = [bar.value for bar in bars]
    low, high = min(0.0, *values), max(0.0, *values)
    across = (canvas.width - 2 * EDGE) / ((high - low) or 1.0)
    zero = EDGE - low * across
    for bar in bars:
        _row(canvas, bar.words, bar.value)
        length = abs(bar.value) * across
        if length >= 0.1:
            left = zero if bar.value > 0 else zero - length
            colour = BLUE if bar.value > 0 else RUST
            canvas.box(left, canvas.y, length, 8, fill=colour, round_by=min(2, length / 2))
        canvas.line([(zero, canvas.y - 2), (zero, canvas.y + 10)])
        canvas.y += 16


def _row(canvas: Canvas, words: Said, value: float, bold: bool = False) -> None:
    """Write words at the left and a number at the right."""
    number = decimal(value)
    room = canvas.width - 2 * EDGE - text_width(number, SMALL) - 12
    canvas.text(EDGE, canvas.y + 12, fitted(say(words, canvas.lang), room, SMALL), size=SMALL, bold=bold)
    canvas.text(canvas.width - EDGE, canvas.y + 12, number, at="end", size=SMALL, bold=bold)
    canvas.y += LINE


def _line(canvas: Canvas, words: str, bold: bool = False) -> None:
    """Write a line, cut if it is too long."""
    size = SIZE if bold else SMALL
    said = fitted(words, canvas.width - 2 * EDGE, size)
    canvas.text(EDGE, canvas.y + 13, said, size=size, bold=bold)
    canvas.y += LINE + 2


def fitted(words: str, pixels: float, size: float) -> str:
    """Return words, without their middle if they do not fit."""
    kept = len(words)
    cut = words
    while text_width(cut, size) > pixels and kept:
        kept -= 1
        cut = f"{words[: kept - kept // 2]}…{words[len(words) - kept // 2 :]}"
    return cut


def _wrapped(words: str, pixels: float, lang: str) -> list[str]:
    """Return words on as many lines as they need."""
    lines = [""]
    for piece in words if lang == "zh" else (f"{word} " for word in words.split()):
        if text_width(lines[-1] + piece.rstrip(), SMALL) > pixels:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _partial(target: str) -> str:
    return f"∂loss/∂{target[2:]}" if target.startswith("d ") else target
