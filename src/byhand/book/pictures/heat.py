"""Matrices as heat maps: numbers in cells, whose colours say how large they are; masked ones are crossed out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import TINY, WHITE, Canvas, shade
from byhand.book.words.language import Said

PALE, DEEP, DEEP_NEGATIVE, INK = "#e6eef7", "#0f4f8f", "#9a3412", "#000000"  # a cell has its own ground
AMBER = "#f5a300"
Hidden = Callable[[int, int], bool]


def heat(
    canvas: Canvas, x: float, y: float, rows: Sequence[Sequence[float]], *, cell: tuple[float, float] = (44, 30),
    largest: float = 0.0, rows_said: Sequence[Said] = (), columns_said: Sequence[Said] = (),
    hidden: Hidden | None = None, marked: tuple[int, int] | None = None, digits: int = 3,
    shown: Callable[[float], str] | None = None,
) -> float:  # fmt: skip
    """Draw a matrix with its corner at x and y, and return where it ends at the bottom.

    largest  the number that has the deepest colour, blue above 0 and rust below; the largest one if not given
    ..._said stand at the left of the rows and above the columns
    hidden   says which elements a mask hides; `marked` gets a frame
    """
    wide, high = cell
    write = shown or (lambda value: decimal(value, digits))
    deepest = largest or max((abs(v) for row in rows for v in row if abs(v) < float("inf")), default=0.0) or 1.0
    for j, words in enumerate(columns_said):
        if words:
            canvas.text(x + (j + 0.5) * wide, y - 6, words, at="middle", size=TINY)
    for i, row in enumerate(rows):
        top = y + i * high
        if rows_said:
            canvas.text(x - 6, top + high / 2 + 4, rows_said[i], at="end", size=TINY)
        for j, value in enumerate(row):
            if hidden and hidden(i, j):
                crossed(canvas, x + j * wide, top, wide, high)
            else:
                _cell(canvas, x + j * wide, top, wide, high, write(value), tint(value / deepest))
    if marked:
        frame(canvas, x + marked[1] * wide, y + marked[0] * high, wide, high)
    return y + len(rows) * high


def tint(part: float) -> str:
    """Return the colour of a number between -1 and 1, and for none that of 0."""
    return shade(abs(part) if part == part else 0, DEEP if part >= 0 else DEEP_NEGATIVE, PALE)


def ink(fill: str) -> str:
    """Return the colour of letters that is read best on another colour."""
    light = _luminance(fill)
    return WHITE if 1.05 / (light + 0.05) > (light + 0.05) / (_luminance(INK) + 0.05) else INK


def crossed(canvas: Canvas, x: float, y: float, wide: float, high: float) -> None:
    """Draw a cell that a mask hides: hatched, without ground."""
    canvas.box(x + 1, y + 1, wide - 2, high - 2, round_by=2)
    for part in range(1, 6):
        reach = part * (wide + high - 4) / 6
        right, up = min(reach, wide - 2), min(reach, high - 2)
        left, down = reach - up, reach - right
        canvas.line([(x + 1 + left, y + high - 1 - up), (x + 1 + right, y + high - 1 - down)], thick=0.6)


def frame(canvas: Canvas, x: float, y: float, wide: float, high: float) -> None:
    """Frame a cell, bright and dark, so that it is seen on every colour and ground."""
    for out, colour in ((1.5, AMBER), (-0.5, INK)):
        canvas.frame(x - out, y - out, wide + 2 * out, high + 2 * out, colour, 1.8)


def scale(canvas: Canvas, x: float, y: float, low: float, high: float, width: float = 120) -> None:
    """Draw a strip of the colours from one number to another, with the numbers at its ends."""
    deepest = max(abs(low), abs(high)) or 1.0
    steps = 24
    for k in range(steps):
        value = low + (high - low) * (k + 0.5) / steps
        canvas.area(_corners(x + k * width / steps, y, width / steps + 0.4, 10), tint(value / deepest))
    canvas.text(x - 6, y + 9, decimal(low, 3), at="end", size=TINY)
    canvas.text(x + width + 6, y + 9, decimal(high, 3), size=TINY)


def mask(i: int, j: int) -> bool:
    """Say whether the causal mask hides key j from query i, where both count the same positions."""
    return j > i


def _cell(canvas: Canvas, x: float, y: float, wide: float, high: float, words: str, fill: str) -> None:
    canvas.box(x + 1, y + 1, wide - 2, high - 2, fill=fill, round_by=2)
    if words:
        canvas.text(x + wide / 2, y + high / 2 + 4, words, colour=ink(fill), at="middle", size=TINY)


def _corners(x: float, y: float, wide: float, high: float) -> list[tuple[float, float]]:
    return [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)]


def _luminance(colour: str) -> float:
    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
