"""Plots of scenes as SVG: scales, curves, bars and points."""

from __future__ import annotations

from math import isnan

from byhand.book.pictures.canvas import FAINT, TINY, WHITE, Canvas, text_width
from byhand.book.pictures.scene.charts import Bars, Chart, Circle, Dots, Level, Mark, Polyline, Vector
from byhand.book.pictures.scene.elements import Key
from byhand.book.pictures.scene.layout import Placed
from byhand.book.pictures.scene.measure import bar_words, chart_area, keyed, ticks

PLACES = {  # of words beside a dot: the end at which they are held, and their distance from it
    "right": ("start", 8, 4), "left": ("end", -8, 4), "above": ("middle", 0, -9), "below": ("middle", 0, 18),
    "above right": ("start", 7, -5), "below right": ("start", 8, 14), "above left": ("end", -6, -8),
    "below left": ("end", -6, 13),
}  # fmt: skip


def draw_chart(canvas: Canvas, p: Placed, e: Chart) -> tuple[Key | None, float]:
    """Draw a plot; return the key that stands above it, and the room at its left."""
    left, above, right = chart_area(e, p.width, canvas.lang)
    _Drawing(canvas, e, p.x + left, p.y + above, p.width - left - right).draw()
    return keyed(e), left


class _Drawing:
    """A rectangle of a canvas in which numbers have places: `x` and `y` turn them into pixels."""

    def __init__(self, canvas: Canvas, e: Chart, left: float, top: float, width: float) -> None:
        self.canvas, self.e = canvas, e
        self.left, self.right, self.bottom = left, left + width, top + e.high

    def x(self, value: float) -> float:
        """Return the horizontal place of a number."""
        low, high = self.e.xs
        return self.left + (self.right - self.left) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Return the vertical place of a number."""
        low, high = self.e.ys
        return self.bottom - self.e.high * (value - low) / (high - low)

    def draw(self) -> None:
        """Draw the scales, then what stands on them."""
        e, canvas = self.e, self.canvas
        categories = any(isinstance(mark, Bars) for mark in e.marks)
        negative = any(min(mark.values) < 0 for mark in e.marks if isinstance(mark, Bars))
        foot = self.bottom + (15 if negative else 0)
        for at, words in ticks(e.x_ticks).items():
            if e.lines and not categories:
                canvas.line([(self.x(at), self.y(y)) for y in e.ys], opacity=FAINT)
            canvas.text(self.x(at), foot + 15, words, at="middle", size=TINY)
        for at, words in ticks(e.y_ticks).items():
            canvas.line([(self.left, self.y(at)), (self.right, self.y(at))], opacity=FAINT)
            canvas.text(self.left - 6, self.y(at) + 4, words, at="end", size=TINY)
        down = foot + (30 if e.x_ticks else 14)
        canvas.text((self.left + self.right) / 2, down, e.x_words, at="middle", size=TINY)
        for mark in e.marks:
            match mark:
                case Polyline():
                    self.curve(mark)
                case Bars():
                    self.bars(mark)
                case Mark():
                    self.mark(mark)
                case Level():
                    self.level(mark)
                case Dots():
                    for i, value in enumerate(mark.xs):
                        canvas.dot(self.x(value), self.y((i % 5 - 2) * 0.3), 2.5, mark.colour, opacity=0.6)
                case Vector():
                    way = [(self.x(0), self.y(0)), (self.x(mark.tip[0]), self.y(mark.tip[1]))]
                    canvas.arrow(way, colour=mark.colour, thick=mark.thick)
                case Circle():
                    radius = self.x(mark.radius) - self.x(0)
                    canvas.ring(self.x(0), self.y(0), radius, line=mark.colour, thick=1.5, dashed=True)
        if e.zero:
            canvas.line([(self.left, self.y(0)), (self.right, self.y(0))])

    def curve(self, e: Polyline) -> None:
        """Draw a line through points, broken where a number is NaN."""
        piece: list[tuple[float, float]] = []
        for x, y in [*zip(map(float, e.xs), map(float, e.ys), strict=True), (0.0, float("nan"))]:
            if not isnan(y):
                piece.append((self.x(x), self.y(y)))
            elif piece:
                self.canvas.line(piece, colour=e.colour, thick=2, dashed=e.dashed)
                piece = []

    def bars(self, e: Bars) -> None:
        """Draw bars from 0 with words beyond their ends."""
        each = self.x(1) - self.x(0)
        wide = min(e.part * each, e.most)
        for i, (value, words) in enumerate(zip(map(float, e.values), bar_words(e), strict=True)):
            zero, end = self.y(0), self.y(value)
            if abs(end - zero) >= 0.1:
                place = self.x(i) - wide / 2, min(zero, end), wide, abs(end - zero)
                self.canvas.box(*place, fill=e.colour, round_by=min(2, place[-1] / 2))
            size = TINY if text_width(str(words), TINY) <= each else 10.0
            self.canvas.text(self.x(i), end + (size + 2 if value < 0 else -4), words, at="middle", size=size)

    def mark(self, e: Mark) -> None:
        """Draw a dot with words beside it."""
        x, y = self.x(e.x), self.y(e.y)
        self.canvas.dot(x, y, 8 if e.number else 4, e.colour)
        self.canvas.text(x, y + 4, e.number, colour=WHITE, at="middle", size=TINY, bold=True)
        at, right, down = PLACES[e.place]
        self.canvas.text(x + right, y + down, e.words, at=at, size=TINY)

    def level(self, e: Level) -> None:
        """Draw a line from edge to edge."""
        y = self.y(e.y)
        self.canvas.line([(self.left, y), (self.right, y)], colour=e.colour, dashed=e.dashed)
        if e.beside:
            self.canvas.text(self.right + 4, y + 4, e.words, size=TINY)
        else:
            self.canvas.text(self.right, y + 16, e.words, at="end", size=TINY)
