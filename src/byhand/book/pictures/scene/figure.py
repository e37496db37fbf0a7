"""The interface of a scene's elements: each takes its place, is drawn there, and is described in words.

An element declares what it shows, with its numbers, but never a place: its container places it. To add an element,
write a class that overrides `natural`, `height`, `draw` and `said` of `Figure` as needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from byhand.book.pictures.canvas import LINE, SMALL, WIDTH, Canvas, Point, text_width
from byhand.book.words.language import COLON, PAUSE, Said, say

WIDE, CLOSING = "\u2e80-\U0010ffff", "，。：；、）」”,.;:)!?％%"  # Chinese letters; those that never begin a line
BREAKS = {  # where a line may end
    "en": re.compile(r"(?<= )"),
    "zh": re.compile(rf"(?<= )|(?:(?<=[{WIDE}])|(?=[{WIDE}]))(?![{CLOSING}])"),
}
PARTS = {"start": 0.0, "middle": 0.5, "end": 1.0}  # of the room that is left, before an element


@dataclass
class Placed:
    """An element in its place, a link with its points."""

    element: Figure
    x: float
    y: float
    width: float
    height: float
    points: tuple[Point, ...] = ()

    def side(self, side: str) -> Point:
        """Return the middle of a side."""
        x, y = self.x + self.width / 2, self.y + self.height / 2
        across = {"left": self.x, "right": self.x + self.width}.get(side, x)
        return across, {"top": self.y, "bottom": self.y + self.height}.get(side, y)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """An element of a scene.

    title  stands above it in bold letters, and before its numbers in words
    name   by which links find it
    says   replaces its description in the alternative text; "" for none
    at     its place in a wider slot: start, middle or end
    shows  the lesson's array whose numbers it has, by name: S, ∂S
    """

    title: Said = ""
    name: str = ""
    says: Said | None = None
    at: str = ""
    shows: str = ""

    def natural(self, lang: str) -> float | None:
        """Return the width that it needs, or None if it fills its slot."""
        return None

    def height(self, width: float, lang: str) -> float:
        """Return the height that it needs at a width."""
        return 0

    def draw(self, canvas: Canvas, p: Placed) -> None:
        """Draw it in its place."""

    def said(self, lang: str) -> list[str]:
        """Describe it in words."""
        return []

    def titled(self, own: float, lang: str) -> tuple[float, float] | None:
        """Return what a title is centred above, as its beginning and length; None for a title at the left."""
        return (0, own) if self.at == "middle" else None

    def parts(self, lang: str) -> list[str]:
        """Return its parts of the alternative text, the first after its title."""
        if self.says is not None:
            return [*filter(None, [say(self.says, lang)])]
        found = [part for part in self.said(lang) if part]
        if self.title and found:
            found[0] = named(self.title, found[0], lang)
        return found

    def put(self, x: float, y: float, width: float, lang: str, found: list[Placed]) -> float:
        """Place its title, itself and its contents; return their height."""
        over = self._put_title(x, y, width, lang, found) if self.title else 0
        return over + self.place(x, y + over, width, lang, found)

    def place(self, x: float, y: float, width: float, lang: str, found: list[Placed]) -> float:
        """Place it and its contents; return its height."""
        own = min(self.natural(lang) or width, width)
        found.append(Placed(self, x + self.left(own, width), y, own, self.height(own, lang)))
        return found[-1].height

    def left(self, own: float, width: float) -> float:
        """Return the room at its left in a wider slot."""
        return (width - own) * PARTS[self.at or "middle"]

    def _put_title(self, x: float, y: float, width: float, lang: str, found: list[Placed]) -> float:
        """Place the title; centred above a narrow part it may reach beyond it."""
        title, own = Caption(self.title, bold=True), min(self.natural(lang) or width, width)
        if part := self.titled(own, lang):
            first, across = part
            wide = title.natural(lang)
            x = max(4, min(x + self.left(own, width) + first + (across - wide) / 2, WIDTH - 4 - wide))
            width = wide
        return title.put(x, y, width, lang, found) + 4


@dataclass(frozen=True)
class Caption(Figure):
    """Words, on as many lines as they need. The alternative text has those with a number."""

    words: Said
    bold: bool = False
    size: float = SMALL
    mono: bool = False

    def natural(self, lang: str) -> float:
        return text_width(say(self.words, lang), self.size) + 0.01

    def height(self, width: float, lang: str) -> float:
        return LINE * len(self._lines(width, lang))

    def place(self, x: float, y: float, width: float, lang: str, found: list[Placed]) -> float:
        found.append(Placed(self, x, y, width, self.height(width, lang)))
        return found[-1].height

    def draw(self, canvas: Canvas, p: Placed) -> None:
        at = self.at or "start"
        for i, line in enumerate(self._lines(p.width, canvas.lang)):
            x, y = p.x + p.width * PARTS[at], p.y + 12 + i * LINE
            canvas.text(x, y, line, at=at, size=self.size, bold=self.bold, mono=self.mono)

    def said(self, lang: str) -> list[str]:
        words = say(self.words, lang)
        return [words] if any(map(str.isdigit, words)) else []

    def _lines(self, width: float, lang: str) -> list[str]:
        words = say(self.words, lang)
        if text_width(words, self.size) <= width + 0.02:
            return [words]
        lines = [""]
        for piece in filter(None, BREAKS[lang].split(words)):
            if lines[-1] and text_width(lines[-1] + piece.rstrip(), self.size) > width:
                lines.append("")
            lines[-1] += piece
        return [line.rstrip() for line in lines]


def named(name: Said, part: str, lang: str) -> str:
    """Return a part with its name: a matrix equals it, a list follows it."""
    said = say(name, lang).replace("：", "，").replace(": ", ", ")
    between = " = " if part.startswith("[") else (PAUSE if COLON.said(lang) in part else COLON).said(lang)
    return f"{said}{between}{part}"
