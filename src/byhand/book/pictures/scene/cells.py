"""Cells: matrices, heat maps and stretches of memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import AMBER, BLUE, INK, LINE, TINY, WHITE, Canvas, ink, text_width, tint
from byhand.book.pictures.scene.figure import Figure, Placed, named
from byhand.book.words.language import COMMA, Said, Words, say

HEAT = "heat"  # a cell's colour by its number: blue above 0, rust below
ONE = 1.0  # the number that has the deepest colour among weights and probabilities


@dataclass(frozen=True)
class Frame:
    """A frame around cells, from one (row, column) to another; without a colour it stands out from every other."""

    first: tuple[int, int]
    last: tuple[int, int]
    colour: str = ""


@dataclass(frozen=True)
class Cells(Figure):
    """Rows of numbers or words in coloured cells.

    fill         one colour, `HEAT`, or a colour for each cell
    largest      the number that has the deepest colour; the largest one if not given
    rows, columns  names at the left and above; `corner` is the room for the names of rows, if given
    hidden       cells that a mask hides
    counted      whether the numbers only count the cells
    """

    values: Any
    fill: str | Sequence[Sequence[str]] = BLUE
    largest: float = 0
    rows: Sequence[Said] = ()
    columns: Sequence[Said] = ()
    hidden: Collection[tuple[int, int]] = ()
    frames: Sequence[Frame] = ()
    cell: tuple[float, float] = (0, 0)
    corner: float = 0
    size: float = TINY
    shown: bool = True
    counted: bool = False

    def natural(self, lang: str) -> float:
        return sum(self._widths(lang))

    def height(self, width: float, lang: str) -> float:
        return len(self.values) * self._cell(lang)[1] + (LINE if self.columns else 0)

    def titled(self, own: float, lang: str) -> tuple[float, float] | None:
        return self._widths(lang) if self.at in ("", "middle") else None

    def draw(self, canvas: Canvas, p: Placed) -> None:
        corner, across = self._widths(canvas.lang)
        x, y = p.x + corner + (p.width - corner - across) / 2, p.y + (LINE if self.columns else 0)
        wide, high = self._cell(canvas.lang)
        heat, one = self.fill == HEAT, isinstance(self.fill, str) and self.fill != HEAT
        if one and len(self.values):
            canvas.box(x, y, wide * len(self.values[0]), high * len(self.values), fill=str(self.fill))
        for j, words in enumerate(self.columns):
            canvas.text(x + (j + 0.5) * wide, y - 5, words, at="middle", size=TINY)
        sizes = [abs(v) for row in self.values for v in row if isinstance(v, (int, float)) and isfinite(v)]
        deepest, gap = self.largest or max(sizes, default=0) or 1, 1 if wide > 20 else 0.5
        for i, row in enumerate(self.values):
            if self.rows:
                canvas.text(x - 6, y + (i + 0.5) * high + 4, self.rows[i], at="end", size=TINY)
            for j, value in enumerate(row):
                left, top, colour = x + j * wide, y + i * high, WHITE
                if (i, j) in self.hidden:
                    canvas.crossed(left, top, wide, high)
                    continue
                if not one:
                    fill = tint(float(value) / deepest) if heat else self.fill[i][j]
                    colour = ink(fill) if heat else WHITE
                    canvas.box(left + gap, top + gap, wide - 2 * gap, high - 2 * gap, fill=fill, round_by=2)
                words = self._written(value, canvas.lang)
                canvas.text(left + wide / 2, top + high / 2 + 4, words, colour=colour, at="middle", size=self.size)
        for frame in self.frames:
            (top, left), (bottom, right) = frame.first, frame.last
            place = x + left * wide, y + top * high, (right - left + 1) * wide, (bottom - top + 1) * high
            # Without a colour it is bright and dark, to stand out from every colour and background.
            for out, colour in ((0.0, frame.colour),) if frame.colour else ((1.5, AMBER), (-0.5, INK)):
                around = place[0] - out, place[1] - out, place[2] + 2 * out, place[3] + 2 * out
                canvas.box(*around, line=colour, round_by=3, thick=2.5 if frame.colour else 1.8)

    def said(self, lang: str) -> list[str]:
        if not self.shown:
            return []
        if self.counted:
            first, last = self.values[0][0], self.values[-1][-1]
            return [Words(f"{first} to {last}", f"{first} 至 {last}").said(lang)]
        lines = [
            [
                decimal(float(value), 3) if isinstance(value, (int, float)) else say(value, lang)
                for j, value in enumerate(row) if (i, j) not in self.hidden
            ]
            for i, row in enumerate(self.values)
        ]  # fmt: skip
        if not self.rows and len(lines) > 1:
            return [f"[{', '.join(f'[{part}]' for part in map(', '.join, lines))}]"]
        listed = (COMMA.said(lang).join(line) for line in lines)
        return [named(*each, lang) for each in zip(self.rows, listed, strict=True)] if self.rows else [*listed]

    def _written(self, value: float | Said, lang: str) -> str:
        """Return what a cell shows, a number with as many digits as there is room for."""
        if not self.shown:
            return ""
        if not isinstance(value, int | float):
            return say(value, lang)
        room, power = self.cell[0] - 2 if self.cell[0] else float("inf"), f"{value:.0e}"
        written = (decimal(value, digits) for digits in (3, 2, 1))
        short = power.replace("e-0", "e−").replace("e+0", "e")
        return next((words for words in written if text_width(words, self.size) < room), short)

    def _cell(self, lang: str) -> tuple[float, float]:
        """Return the width and height of a cell."""
        if self.cell[0]:
            return self.cell
        words = [self._written(value, lang) for row in self.values for value in row]
        return max([34.0, *(text_width(w, self.size) + 5 for w in words)]), 30.0 if self.fill == HEAT else 20.0

    def _widths(self, lang: str) -> tuple[float, float]:
        """Return the width of the names at the left, and of all cells."""
        names = max((text_width(say(words, lang), TINY) + 6 for words in self.rows), default=0.0)
        return self.corner or names, max(map(len, self.values)) * self._cell(lang)[0]
