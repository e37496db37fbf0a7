"""Columns and rows, which hold elements, and the links between these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from byhand.book.pictures.canvas import GREY, SIZE, Canvas
from byhand.book.pictures.scene.figure import Caption, Figure, Placed
from byhand.book.words.language import Said, say

NEAR = 16  # pixels between two middles that need no bend


@dataclass(frozen=True)
class Link(Figure):
    """An arrow between two elements by their names, which leaves one side of the first and enters one of the other.

    straight  as one line; otherwise along the axes, bent where it must be
    back      whether the arrow points back, to the first
    away      pixels that it keeps from elements when it leaves and enters on the same side
    """

    start: str
    end: str
    leave: str = "bottom"
    enter: str = "top"
    words: Said = ""
    colour: str = GREY
    thick: float = 1
    dashed: bool = False
    head: bool = True
    straight: bool = False
    back: bool = False
    away: float = 12

    def between(self, by_name: Mapping[str, Placed]) -> Placed:
        """Return it with its path: bends lie halfway between the elements, or beside both."""
        start = by_name[self.start]
        a, b = start.side(self.leave), by_name[self.end].side(self.enter)
        leaves, enters = (side in ("left", "right") for side in (self.leave, self.enter))
        points = [a, b]
        if self.straight:
            pass
        elif self.leave == self.enter:
            x = max(a[0], b[0]) + self.away if self.leave == "right" else min(a[0], b[0]) - self.away
            points = [a, (x, a[1]), (x, b[1]), b]
        elif leaves and enters:
            x = (a[0] + b[0]) / 2
            points = [a, (x, a[1]), (x, b[1]), b]
        elif leaves:
            points = [a, (b[0], a[1]), b]
        elif enters:
            points = [a, (a[0], b[1]), b]
        elif start.x < b[0] < start.x + start.width:
            points = [(b[0], a[1]), b]
        elif abs(a[0] - b[0]) < NEAR:
            points = [a, (a[0], b[1])]
        else:
            y = (a[1] + b[1]) / 2 - 2
            points = [a, (a[0], y), (b[0], y), b]
        return Placed(self, 0, 0, 0, 0, tuple(points[::-1] if self.back else points))

    def draw(self, canvas: Canvas, p: Placed) -> None:
        line = canvas.arrow if self.head else canvas.line
        line(p.points, colour=self.colour, thick=self.thick, dashed=self.dashed)
        (ax, ay), (bx, by) = p.points[len(p.points) > 2 :][:2]
        canvas.text(min(ax, bx) - 8, (ay + by) / 2, self.words, at="end", bold=True)


@dataclass(frozen=True)
class Group(Figure):
    """Elements with a gap between them; `join` stands between their words."""

    children: Sequence[Figure]
    gap: float = 8
    join: Said = ""

    def said(self, lang: str) -> list[str]:
        found = [part for child in self.children for part in child.parts(lang)]
        return [say(self.join, lang).join(found)] if self.join else found

    def _naturals(self, lang: str) -> list[float] | None:
        """Return the widths that the elements need, or None if one fills its slot."""
        own = [child.natural(lang) for child in self.children]
        return None if None in own else [width or 0 for width in own]


@dataclass(frozen=True)
class Column(Group):
    """Elements below each other, with links between any that have names; `line` is the colour of a frame."""

    links: Sequence[Link] = ()
    line: str = ""
    pad: float = 0

    def natural(self, lang: str) -> float | None:
        own = self._naturals(lang)
        return None if own is None else max(own, default=0.0) + 2 * self.pad

    def place(self, x: float, y: float, width: float, lang: str, found: list[Placed]) -> float:
        if self.name:  # links end at it, not at its slot
            own = min(self.natural(lang) or width, width)
            x, width = x + self.left(own, width), own
        frame = Placed(self, x, y, width, 0)
        if self.line or self.name:
            found.append(frame)
        low, first = y + self.pad, len(found)
        for i, child in enumerate(self.children):
            low += self.gap if i else 0
            low += child.put(x + self.pad, low, width - 2 * self.pad, lang, found)
        frame.height = low + self.pad - y
        by_name = {p.element.name: p for p in found[first:]}
        found += [link.between(by_name) for link in self.links]
        return frame.height

    def draw(self, canvas: Canvas, p: Placed) -> None:
        if self.line:
            canvas.box(p.x, p.y, p.width, p.height, line=self.line, round_by=8)


@dataclass(frozen=True)
class Across(Group):
    """Elements side by side.

    widths  pixels of each slot, None for an equal part of the rest
    shares  instead of widths: each slot's share of the whole
    Without either, elements take the width that they need, and those without one share the rest.
    """

    widths: Sequence[float | None] = ()
    shares: Sequence[float] = ()
    top: bool = False  # whether children start at the same height; else their middles do

    def natural(self, lang: str) -> float | None:
        own = None if self.widths or self.shares else self._naturals(lang)
        return None if own is None else sum(own) + self.gap * (len(own) - 1)

    def place(self, x: float, y: float, width: float, lang: str, found: list[Placed]) -> float:
        slots = self._slots(width, lang)
        heights = [child.put(0, 0, slot, lang, []) for child, slot in zip(self.children, slots, strict=True)]
        for child, slot, high in zip(self.children, slots, heights, strict=True):
            child.put(x, y + (0 if self.top else (max(heights) - high) / 2), slot, lang, found)
            x += slot + self.gap
        return max(heights)

    def _slots(self, width: float, lang: str) -> list[float]:
        room = width - self.gap * (len(self.children) - 1)
        if self.shares:
            return [room * share / sum(self.shares) for share in self.shares]
        own = [*self.widths] or [child.natural(lang) for child in self.children]
        found = [w for w in own if w is not None]
        left = room - sum(found)
        if len(found) < len(own):
            return [left / (len(own) - len(found)) if w is None else w for w in own]
        if self.widths:
            return found
        return [w + left / len(own) for w in found] if left > 0 else [w * room / sum(found) for w in found]


def heading(words: Said, remark: Said = "") -> Figure:
    """Return a bold line at the left, with a remark at the right."""
    line = Caption(words, bold=True, size=SIZE)
    return Across([line, Caption(remark, at="end")]) if remark else line
