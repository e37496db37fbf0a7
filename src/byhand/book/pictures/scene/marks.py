"""Marks on a chart: curves, bars and points. To add one, write a class with `draw` and `said`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREY, RUST, TINY, WHITE, Canvas, Point, text_width
from byhand.book.pictures.scene.figure import named
from byhand.book.words.language import COMMA, Said, say

BESIDE = {  # words beside a dot: their anchor, and their distance from it
    "right": ("start", 8, 4), "left": ("end", -8, 4), "above": ("middle", 0, -9), "below": ("middle", 0, 18),
    "above right": ("start", 7, -5), "below right": ("start", 8, 14), "above left": ("end", -6, -8),
    "below left": ("end", -6, 13),
}  # fmt: skip
Numbers = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Grid:
    """A rectangle that maps numbers to places."""

    xs: tuple[float, float]
    ys: tuple[float, float]
    left: float
    right: float
    bottom: float
    high: float

    def x(self, value: float) -> float:
        """Return the horizontal place of a number."""
        low, high = self.xs
        return self.left + (self.right - self.left) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Return the vertical place of a number."""
        low, high = self.ys
        return self.bottom - self.high * (value - low) / (high - low)


class OnChart:
    """A mark on a chart."""

    def draw(self, canvas: Canvas, grid: Grid) -> None:
        """Draw it at the places of its numbers."""

    def said(self, at: Numbers, lang: str) -> list[str]:
        """Describe it in words; a curve by its values at these x."""
        return []


@dataclass(frozen=True)
class Polyline(OnChart):
    """A line through points, broken at NaN, whose name the plot's key explains."""

    xs: Any
    ys: Any
    colour: str = BLUE
    words: Said = ""
    dashed: bool = False

    def draw(self, canvas: Canvas, grid: Grid) -> None:
        piece: list[Point] = []
        for x, y in [*zip(map(float, self.xs), map(float, self.ys), strict=True), (0.0, float("nan"))]:
            if not isnan(y):
                piece.append((grid.x(x), grid.y(y)))
            elif piece:
                canvas.line(piece, colour=self.colour, thick=2, dashed=self.dashed)
                piece = []

    def said(self, at: Numbers, lang: str) -> list[str]:
        found = dict(zip(map(float, self.xs), map(float, self.ys), strict=True))
        return [row(lang, self.words, [found[float(x)] for x in at])] if len(at) else []


@dataclass(frozen=True)
class Bars(OnChart):
    """Bars from 0 to each value, at 0, 1, 2, ..., with numbers beyond their ends or the given words."""

    values: Numbers
    colour: str = BLUE
    digits: int = 3
    words: Sequence[Said] | None = None
    part: float = 0.55  # of the room for each
    most: float = 50  # pixels

    def draw(self, canvas: Canvas, grid: Grid) -> None:
        each, zero = grid.x(1) - grid.x(0), grid.y(0)
        wide = min(self.part * each, self.most)
        for i, (value, words) in enumerate(zip(map(float, self.values), self._listed(), strict=True)):
            x, end = grid.x(i), grid.y(value)
            if (high := abs(end - zero)) >= 0.1:
                canvas.box(x - wide / 2, min(zero, end), wide, high, fill=self.colour, round_by=min(2, high / 2))
            size = TINY if text_width(str(words), TINY) <= each else 10.0
            canvas.text(x, end + (size + 2 if value < 0 else -4), words, at="middle", size=size)

    def said(self, at: Numbers, lang: str) -> list[str]:
        return [COMMA.said(lang).join(say(words, lang) for words in self._listed())]

    def _listed(self) -> Sequence[Said]:
        return self.words if self.words is not None else [decimal(float(value), self.digits) for value in self.values]


@dataclass(frozen=True)
class Mark(OnChart):
    """A dot at a number with words beside it: right, left, above, below, or two of them such as `above right`."""

    x: float
    y: float
    words: Said = ""
    place: str = "right"
    colour: str = BLUE
    says: Said | None = None
    number: str = ""  # within the dot

    def draw(self, canvas: Canvas, grid: Grid) -> None:
        x, y = grid.x(self.x), grid.y(self.y)
        canvas.dot(x, y, 8 if self.number else 4, self.colour)
        canvas.text(x, y + 4, self.number, colour=WHITE, at="middle", size=TINY, bold=True)
        at, right, down = BESIDE[self.place]
        canvas.text(x + right, y + down, self.words, at=at, size=TINY)

    def said(self, at: Numbers, lang: str) -> list[str]:
        return [say(self.words if self.says is None else self.says, lang)]


@dataclass(frozen=True)
class Level(OnChart):
    """A dashed line from edge to edge, with words beside it or below its right end."""

    y: float
    words: Said
    beside: bool = False

    def draw(self, canvas: Canvas, grid: Grid) -> None:
        y = grid.y(self.y)
        canvas.line([(grid.left, y), (grid.right, y)], colour=RUST, dashed=True)
        right, down, at = (4, 4, "start") if self.beside else (0, 16, "end")
        canvas.text(grid.right + right, y + down, self.words, at=at, size=TINY)

    def said(self, at: Numbers, lang: str) -> list[str]:
        return [say(self.words, lang)]


@dataclass(frozen=True)
class Dots(OnChart):
    """Points of a cloud, spread over a few heights so that they can be told apart."""

    xs: Numbers

    def draw(self, canvas: Canvas, grid: Grid) -> None:
        for i, value in enumerate(self.xs):
            canvas.dot(grid.x(value), grid.y((i % 5 - 2) * 0.3), 2.5, BLUE, opacity=0.6)


@dataclass(frozen=True)
class Vector(OnChart):
    """An arrow from the origin to a point."""

    tip: Point
    colour: str = BLUE
    thick: float = 2

    def draw(self, canvas: Canvas, grid: Grid) -> None:
        way = [(grid.x(0), grid.y(0)), (grid.x(self.tip[0]), grid.y(self.tip[1]))]
        canvas.arrow(way, colour=self.colour, thick=self.thick)


@dataclass(frozen=True)
class Circle(OnChart):
    """A dashed circle around the origin."""

    radius: float
    colour: str = GREY

    def draw(self, canvas: Canvas, grid: Grid) -> None:
        canvas.ring(grid.x(0), grid.y(0), grid.x(self.radius) - grid.x(0), self.colour)


def row(lang: str, name: Said, values: Iterable[float]) -> str:
    """Return a name and its numbers."""
    return named(name, COMMA.said(lang).join(decimal(float(x), 3) for x in values), lang)
