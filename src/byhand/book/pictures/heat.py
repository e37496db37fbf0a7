"""Matrices as heat maps: cells with numbers, coloured by size; masked cells are crossed out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import TINY, WHITE, Canvas
from byhand.book.words.language import Said

PALE, DEEP, DEEP_NEGATIVE, INK = "#e6eef7", "#0f4f8f", "#9a3412", "#000000"  # cells have a background
AMBER = "#f5a300"
Hidden = Callable[[int, int], bool]


def brief(value: float) -> str:
    """Write a number with three digits."""
    return decimal(value, 3)


def heat(
    canvas: Canvas, x: float, y: float, rows: Sequence[Sequence[float]], *, cell: tuple[float, float],
    largest: float = 0.0, rows_said: Sequence[Said] = (), columns_said: Sequence[Said] = (),
    hidden: Hidden | None = None, marked: tuple[int, int] | None = None, shown: Callable[[float], str] = brief,
) -> float:  # fmt: skip
    """Draw a matrix with its corner at x and y, and return its lower edge.

    largest  the number that has the deepest colour, blue above 0 and rust below; the largest one if not given
    ..._said stand at the left of the rows and above the columns
    hidden   says which elements a mask hides; `marked` gets a frame
    """
    wide, high = cell
    deepest = largest or max((abs(v) for row in rows for v in row if abs(v) < float("inf")), default=0.0) or 1.0
    for j, words in enumerate(columns_said):
        canvas.text(x + (j + 0.5) * wide, y - 6, words, at="middle", size=TINY)
    for i, row in enumerate(rows):
        top = y + i * high
        canvas.text(x - 6, top + high / 2 + 4, rows_said[i] if rows_said else "", at="end", size=TINY)
        for j, value in enumerate(row):
            if hidden and hidden(i, j):
                crossed(canvas, x + j * wide, top, wide, high)
            else:
                _cell(canvas, x + j * wide, top, wide, high, shown(value), tint(value / deepest))
    if marked:
        frame(canvas, x + marked[1] * wide, y + marked[0] * high, wide, high)
    return y + len(rows) * high


def tint(part: float) -> str:
    """Return the colour of a number between -1 and 1, and for NaN that of 0."""
    deep, strength = DEEP if part >= 0 else DEEP_NEGATIVE, min(abs(part), 1.0) if part == part else 0.0
    mixed = (round(a + strength * (b - a)) for a, b in zip(_channels(PALE), _channels(deep), strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def ink(fill: str) -> str:
    """Return the colour of letters that is read best on another colour."""
    light = _luminance(fill)
    return WHITE if 1.05 / (light + 0.05) > (light + 0.05) / (_luminance(INK) + 0.05) else INK


def crossed(canvas: Canvas, x: float, y: float, wide: float, high: float) -> None:
    """Draw a cell that a mask hides: hatched, without a background."""
    canvas.box(x + 1, y + 1, wide - 2, high - 2, round_by=2)
    for part in range(1, 6):
        reach = part * (wide + high - 4) / 6
        right, up = min(reach, wide - 2), min(reach, high - 2)
        left, down = reach - up, reach - right
        canvas.line([(x + 1 + left, y + high - 1 - up), (x + 1 + right, y + high - 1 - down)], thick=0.6)


def frame(canvas: Canvas, x: float, y: float, wide: float, high: float) -> None:
    """Frame a cell, bright and dark, to stand out from every colour and background."""
    for out, colour in ((1.5, AMBER), (-0.5, INK)):
        canvas.frame(x - out, y - out, wide + 2 * out, high + 2 * out, colour, 1.8)


def scale(canvas: Canvas, x: float, y: float, low: float, high: float) -> None:
    """Draw a strip of the colours from one number to another, with the numbers at its ends."""
    deepest = max(abs(low), abs(high)) or 1.0
    steps, width = 24, 120
    for k in range(steps):
        value = low + (high - low) * (k + 0.5) / steps
        canvas.area(_corners(x + k * width / steps, y, width / steps + 0.4, 10), tint(value / deepest))
    canvas.text(x - 6, y + 9, brief(low), at="end", size=TINY)
    canvas.text(x + width + 6, y + 9, brief(high), size=TINY)


def mask(i: int, j: int) -> bool:
    """Say whether the causal mask hides key j from query i, where both count the same positions."""
    return j > i


def _cell(canvas: Canvas, x: float, y: float, wide: float, high: float, words: str, fill: str) -> None:
    canvas.box(x + 1, y + 1, wide - 2, high - 2, fill=fill, round_by=2)
    canvas.text(x + wide / 2, y + high / 2 + 4, words, colour=ink(fill), at="middle", size=TINY)


def _corners(x: float, y: float, wide: float, high: float) -> list[tuple[float, float]]:
    return [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)]


def _luminance(colour: str) -> float:
    def linear(channel: int) -> float:
        part = channel / 255
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4

    red, green, blue = map(linear, _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
