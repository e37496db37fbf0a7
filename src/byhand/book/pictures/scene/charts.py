"""Charts: marks over two scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import FAINT, LINE, TINY, Canvas, text_width
from byhand.book.pictures.scene.elements import Key, Sign
from byhand.book.pictures.scene.figure import Figure, Placed
from byhand.book.pictures.scene.marks import Bars, Grid, Level, Numbers, OnChart, Polyline, row
from byhand.book.words.language import Said, say

TICK, BELOW, ABOVE = 18, 16, 17  # pixels: of a scale's numbers, of its words, of a number beyond a bar
Ticks = Sequence[float] | Mapping[int, Said]


@dataclass(frozen=True)
class Chart(Figure):
    """Curves, bars and points over two scales; `high` pixels from the lowest to the highest number.

    said_at  x at which the alternative text gives each curve's values
    """

    xs: tuple[float, float]
    ys: tuple[float, float]
    marks: Sequence[OnChart]
    high: float
    x_ticks: Ticks = ()
    y_ticks: Ticks = ()
    x_words: Said = ""
    wide: float = 0
    lines: bool = True  # faint ones across the plot at each tick of x
    zero: bool = True  # the line at height 0
    said_at: Numbers = ()

    def natural(self, lang: str) -> float | None:
        return self.wide or None

    def height(self, width: float, lang: str) -> float:
        below = (TICK if self.x_ticks else 0) + (BELOW if self.x_words else 0)
        return self._margins(width, lang)[1] + self.high + (ABOVE if self._negative() else 2) + below

    def draw(self, canvas: Canvas, p: Placed) -> None:
        left, above, right = self._margins(p.width, canvas.lang)
        grid = Grid(self.xs, self.ys, p.x + left, p.x + p.width - right, p.y + above + self.high, self.high)
        foot = grid.bottom + (15 if self._negative() else 0)
        for at, words in ticks(self.x_ticks).items():
            if self.lines and not self._bars():
                canvas.line([(grid.x(at), grid.y(y)) for y in self.ys], opacity=FAINT)
            canvas.text(grid.x(at), foot + 15, words, at="middle", size=TINY)
        for at, words in ticks(self.y_ticks).items():
            canvas.line([(grid.left, grid.y(at)), (grid.right, grid.y(at))], opacity=FAINT)
            canvas.text(grid.left - 6, grid.y(at) + 4, words, at="end", size=TINY)
        down = foot + (30 if self.x_ticks else 14)
        canvas.text((grid.left + grid.right) / 2, down, self.x_words, at="middle", size=TINY)
        for mark in self.marks:
            mark.draw(canvas, grid)
        if self.zero:
            canvas.line([(grid.left, grid.y(0)), (grid.right, grid.y(0))])
        if key := self._key():
            key.draw(canvas, Placed(key, p.x + left, p.y, p.width - left, LINE))

    def said(self, lang: str) -> list[str]:
        at = [row(lang, self.x_words, self.said_at)] if len(self.said_at) else []
        return [*at, *(part for mark in self.marks for part in mark.said(self.said_at, lang))]

    def _bars(self) -> list[Bars]:
        return [mark for mark in self.marks if isinstance(mark, Bars)]

    def _negative(self) -> bool:
        return any(min(mark.values) < 0 for mark in self._bars())

    def _key(self) -> Key | None:
        """Return the key to the curves."""
        curves = [mark for mark in self.marks if isinstance(mark, Polyline) and mark.words]
        return Key([Sign(c.words, c.colour, "dashed" if c.dashed else "line") for c in curves]) if curves else None

    def _margins(self, width: float, lang: str) -> tuple[float, float, float]:
        """Return the room at the left of the scales, above them, and at their right."""

        def room(words: Said) -> float:
            return text_width(say(words, lang), TINY)

        left = max((room(words) + 8 for words in ticks(self.y_ticks).values()), default=2.0)
        across = [*ticks(self.x_ticks).items()]
        right = room(across[-1][1]) / 2 if across and across[-1][0] == self.xs[1] else 2.0
        right = max([right, *(room(m.words) + 6 for m in self.marks if isinstance(m, Level) and m.beside)])
        if across and across[0][0] == self.xs[0]:
            left = max(left, room(across[0][1]) / 2)
        key, above = self._key(), ABOVE if self._bars() else 8 if self.y_ticks else 2
        return left, above + (key.height(width, lang) + 2 if key else 0), right


def ticks(given: Ticks) -> dict[float, Said]:
    """Return the places and the words of a scale."""
    return {x: given[x] for x in given} if isinstance(given, Mapping) else {x: decimal(x) for x in given}
