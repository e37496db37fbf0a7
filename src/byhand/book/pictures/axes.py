"""Plots on a canvas: a rectangle with scales, and the curves, bars and points in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREY, SMALL, TINY, Canvas
from byhand.book.words.language import Said

FAINT = 0.3  # opacity of the lines behind curves
ABOVE = 4  # pixels between a bar or a point and its number


class Axes:
    """A rectangle of a canvas in which numbers have places: `x` and `y` turn them into pixels."""

    def __init__(
        self, canvas: Canvas, left: float, top: float, width: float, height: float,
        xs: tuple[float, float], ys: tuple[float, float],
    ) -> None:  # fmt: skip
        self.canvas, self.left, self.top, self.width, self.height = canvas, left, top, width, height
        self._xs, self._ys = xs, ys

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.width

    def x(self, value: float) -> float:
        """Return the horizontal place of a number."""
        low, high = self._xs
        return self.left + self.width * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Return the vertical place of a number."""
        low, high = self._ys
        return self.bottom - self.height * (value - low) / (high - low)

    def x_ticks(self, values: Iterable[float], words: Said = "", lines: bool = True) -> None:
        """Write numbers below the plot, with a faint line across it for each, and below them their meaning."""
        for value in values:
            if lines:
                self.faint([(value, self._ys[0]), (value, self._ys[1])])
            self.canvas.text(self.x(value), self.bottom + 14, decimal(value), at="middle", size=TINY)
        self.canvas.text(self.left + self.width / 2, self.bottom + 30, words, at="middle", size=TINY)

    def y_ticks(self, values: Iterable[float]) -> None:
        """Write numbers at the left of the plot, with a faint line across it for each."""
        for value in values:
            self.faint([(self._xs[0], value), (self._xs[1], value)])
            self.canvas.text(self.left - 6, self.y(value) + 4, decimal(value), at="end", size=TINY)

    def faint(self, points: Sequence[tuple[float, float]]) -> None:
        """Draw a line that stays behind the others."""
        (ax, ay), (bx, by) = ((round(self.x(x), 1), round(self.y(y), 1)) for x, y in points)
        self.canvas.add(
            f'<line x1="{ax:g}" y1="{ay:g}" x2="{bx:g}" y2="{by:g}" stroke="{GREY}" stroke-opacity="{FAINT}"/>'
        )

    def zero(self) -> None:
        """Draw the line at height 0."""
        self.level(0)

    def level(self, value: float, colour: str = GREY, *, thick: float = 1, dashed: bool = False) -> None:
        """Draw a line from edge to edge at the height of a number."""
        points = (self.left, self.y(value)), (self.right, self.y(value))
        self.canvas.line(points, colour=colour, thick=thick, dashed=dashed)

    def curve(self, xs: Iterable[float], ys: Iterable[float], colour: str = BLUE, *, dashed: bool = False) -> None:
        """Draw a line through points."""
        points = [(self.x(float(x)), self.y(float(y))) for x, y in zip(xs, ys, strict=True)]
        self.canvas.line(points, colour=colour, thick=2, dashed=dashed)

    def point(
        self, x: float, y: float, colour: str, words: Said = "", *, at: str = "start", dx: float = 8, dy: float = 4
    ) -> None:
        """Draw a dot with words next to it."""
        self.canvas.dot(self.x(x), self.y(y), 4, colour)
        self.canvas.text(self.x(x) + dx, self.y(y) + dy, words, at=at, size=TINY)

    def bar(self, x: float, value: float, width: float, words: Said, colour: str = BLUE, size: float = TINY) -> None:
        """Draw a bar `width` pixels wide from 0 to a value, with words beyond its end."""
        middle, zero, end = self.x(x), self.y(0), self.y(value)
        if abs(end - zero) >= 0.1:
            top, high = min(zero, end), abs(end - zero)
            self.canvas.box(middle - width / 2, top, width, high, fill=colour, round_by=min(2, high / 2))
        y = end + (size + 2 if value < 0 else -ABOVE)
        self.canvas.text(middle, y, words, at="middle", size=size)


def legend(canvas: Canvas, x: float, y: float, words: Said, colour: str, *, dashed: bool = False) -> None:
    """Write the name of a curve behind a piece of it."""
    canvas.line([(x, y - 4), (x + 20, y - 4)], colour=colour, thick=3 if not dashed else 2, dashed=dashed)
    canvas.text(x + 26, y, words, size=SMALL)
