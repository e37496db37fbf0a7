"""Boxes, arrows, lengths, space, and the key to colours and lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import (
    BLUE,
    GREY,
    LINE,
    RUST,
    SIZE,
    SMALL,
    TINY,
    WHITE,
    Canvas,
    text_width,
    tint,
)  # fmt: skip
from byhand.book.pictures.scene.figure import Figure, Placed
from byhand.book.words.language import COLON, Said, Words, say

SCALE = 120.0  # pixels of a scale of colours


@dataclass(frozen=True)
class Space(Figure):
    """Empty space of a given size."""

    high: float = 0
    wide: float = 0

    def natural(self, lang: str) -> float:
        return self.wide

    def height(self, width: float, lang: str) -> float:
        return self.high


@dataclass(frozen=True)
class Box(Figure):
    """A rectangle around lines of text, the first of a sequence bold; as wide as its slot, if not given.

    Without words it is an area to scale; rounded by half of its height, a dot.
    """

    lines: Said | Sequence[Said]
    fill: str = ""
    line: str = GREY
    round_by: float = 4
    dashed: bool = False
    wide: float = 0
    high: float = 22
    size: float = SMALL

    def natural(self, lang: str) -> float | None:
        return self.wide or None

    def height(self, width: float, lang: str) -> float:
        lines = len(self._listed())
        return max(self.high, LINE * lines + 6) if lines > 1 else self.high

    def draw(self, canvas: Canvas, p: Placed) -> None:
        place, fill = (p.x, p.y, p.width, p.height), self.fill or "none"
        canvas.box(*place, fill=fill, line=self.line, round_by=self.round_by, dashed=self.dashed)
        lines, colour = self._listed(), WHITE if self.fill else GREY
        x, top = p.x + p.width / 2, p.y + (p.height - LINE * len(lines)) / 2 + 12
        for i, words in enumerate(lines):
            bold = i == 0 and not isinstance(self.lines, str | Words)
            canvas.text(x, top + i * LINE, words, colour=colour, at="middle", size=self.size, bold=bold)

    def said(self, lang: str) -> list[str]:
        first, *others = [say(words, lang) for words in self._listed()] or [""]
        between = " " if isinstance(self.lines, str) else COLON.said(lang)
        return [f"{first}{between}{' '.join(others)}" if others else first]

    def _listed(self) -> Sequence[Said]:
        if isinstance(self.lines, str):
            return self.lines.split("\n")
        return (self.lines,) if isinstance(self.lines, Words) else self.lines


@dataclass(frozen=True)
class Length(Figure):
    """A number as a length to the right of 0, or to its left, on a scale as wide as its slot."""

    value: float
    low: float
    high: float

    def height(self, width: float, lang: str) -> float:
        return 12

    def draw(self, canvas: Canvas, p: Placed) -> None:
        across = p.width / ((self.high - self.low) or 1.0)
        zero, length = p.x - self.low * across, abs(self.value) * across
        if length >= 0.1:
            left, colour = (zero, BLUE) if self.value > 0 else (zero - length, RUST)
            canvas.box(left, p.y + 2, length, 8, fill=colour, round_by=min(2, length / 2))
        canvas.line([(zero, p.y), (zero, p.y + 12)])


@dataclass(frozen=True)
class Arrow(Figure):
    """An arrow to the next element of its column, or with `right` of its row."""

    above: Said = ""
    below: Said = ""
    right: bool = False

    def natural(self, lang: str) -> float:
        return max(24, *(text_width(say(w, lang), TINY) for w in (self.above, self.below))) if self.right else 10

    def height(self, width: float, lang: str) -> float:
        return 2 * LINE + 8 if self.above or self.below else 10 if self.right else 14

    def draw(self, canvas: Canvas, p: Placed) -> None:
        x, y = p.x + p.width / 2, p.y + p.height / 2
        canvas.arrow([p.side("left"), p.side("right")] if self.right else [p.side("top"), p.side("bottom")])
        canvas.text(x, y - 6, self.above, at="middle", size=TINY)
        canvas.text(x, y + 15, self.below, at="middle", size=TINY)


@dataclass(frozen=True)
class Sign:
    """An entry of a key: words after a square, a line, a dashed line, a hidden cell, or a scale of `HEAT`."""

    words: Said
    colour: str = BLUE
    kind: str = "square"
    ends: tuple[float, float] = (0, 1)

    def icon(self) -> float:
        """Return the width of the symbol before the words."""
        ends = sum(text_width(decimal(end, 3), TINY) + 6 for end in self.ends)
        return {"square": 12.0, "hidden": 24.0, "scale": SCALE + ends}.get(self.kind, 20.0)

    def width(self, lang: str) -> float:
        """Return the width of the whole."""
        return self.icon() + 6 + text_width(say(self.words, lang), SMALL)

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        """Draw it, its words on y."""
        wide, dashed = self.icon(), self.kind == "dashed"
        if self.kind == "square":
            canvas.box(x, y - 10, wide, 12, fill=self.colour)
        elif self.kind == "hidden":
            canvas.crossed(x, y - 12, wide, 16)
        elif self.kind == "scale":
            self._draw_scale(canvas, x, y - 9)
        else:
            line = [(x, y - 4), (x + wide, y - 4)]
            canvas.line(line, colour=self.colour, thick=2 if dashed else 3, dashed=dashed)
        canvas.text(x + wide + 6, y, self.words, size=SMALL)

    def _draw_scale(self, canvas: Canvas, x: float, y: float) -> None:
        """Draw a strip of the colours from one number to another, with the numbers at its ends."""
        (low, high), steps = self.ends, 24
        deepest, (first, last) = max(abs(low), abs(high)) or 1.0, (decimal(end, 3) for end in self.ends)
        before = text_width(first, TINY) + 6
        canvas.text(x, y + 9, first, size=TINY)
        for k in range(steps):
            value, left = low + (high - low) * (k + 0.5) / steps, x + before + k * SCALE / steps
            right = left + SCALE / steps + 0.4
            canvas.area([(left, y), (right, y), (right, y + 10), (left, y + 10)], tint(value / deepest))
        canvas.text(x + before + SCALE + 6, y + 9, last, size=TINY)


@dataclass(frozen=True)
class Key(Figure):
    """The meaning of colours and lines."""

    signs: Sequence[Sign]

    def natural(self, lang: str) -> float:
        return sum(sign.width(lang) for sign in self.signs) + 16 * (len(self.signs) - 1)

    def height(self, width: float, lang: str) -> float:
        return LINE * ([line for _, _, line in self._lines(width, lang)][-1] + 1) + 4

    def draw(self, canvas: Canvas, p: Placed) -> None:
        for sign, x, line in self._lines(p.width, canvas.lang):
            sign.draw(canvas, p.x + x, p.y + 13 + line * LINE)

    def _lines(self, width: float, lang: str) -> Iterator[tuple[Sign, float, int]]:
        """Yield the entries with their distance from the left and their line."""
        x, line = 0.0, 0
        for sign in self.signs:
            wide = sign.width(lang)
            if x and x + wide > width:
                x, line = 0.0, line + 1
            yield sign, x, line
            x += wide + 16


def dot(words: str = "", fill: str = BLUE, name: str = "", radius: float = 5) -> Box:
    """Return a disc, or without a fill a ring, with a sign in it such as + where two arrays are added."""
    size, wide = TINY if fill else SIZE, 2 * radius
    return Box([words] if words else (), fill, BLUE, radius, wide=wide, high=wide, size=size, name=name, says="")


def told(name: Said, *said: str) -> Words:
    """Return a name and its description."""
    listed = ", ".join(said)
    return Words(*(f"{say(name, lang)}{COLON.said(lang)}{listed}" for lang in ("en", "zh")))
