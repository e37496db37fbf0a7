"""Places of a scene's elements, from top to bottom and from left to right, and the ways of links between them."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.book.pictures.canvas import LINE, SMALL, WIDTH, Point, text_width
from byhand.book.pictures.scene.elements import Across, Caption, Cells, Column, Figure, Link
from byhand.book.pictures.scene.measure import body, height, natural
from byhand.book.words.language import say

NEAR = 16  # pixels between two middles that need no bend


@dataclass
class Placed:
    """An element, or a link with its points, in its place."""

    element: Figure | Link
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


def placed(root: Figure, width: float, lang: str) -> tuple[list[Placed], float]:
    """Return all elements in their places, and the height of the whole."""
    found: list[Placed] = []
    high = _put(root, 4, 2, width - 8, lang, found)
    return found, high + 6


def _put(e: Figure, x: float, y: float, width: float, lang: str, found: list[Placed]) -> float:
    """Place an element and what it holds; return its height."""
    top = y
    if e.title:
        y += _title(e, x, y, width, lang, found)
    if isinstance(e, Column):
        own = natural(e, lang) if e.name else None
        if own and own < width:  # links end at it, not at its slot
            x, width = x + _offset(e, own, width), own
        return _column(e, x, y, width, lang, found) + y - top
    if isinstance(e, Across):
        return _row(e, x, y, width, lang, found) + y - top
    own = min(natural(e, lang) or width, width) if not isinstance(e, Caption) else width
    high = height(e, own, lang)
    found.append(Placed(e, x + _offset(e, own, width), y, own, high))
    return high + y - top


def _title(e: Figure, x: float, y: float, width: float, lang: str, found: list[Placed]) -> float:
    """Place a title above an element; above the middle of cells it may reach beyond them. Return its height."""
    text, wide = Caption(e.title, bold=True), text_width(say(e.title, lang), SMALL) + 0.01
    middle = e.at == "middle" or (isinstance(e, Cells) and not e.at)
    if middle:
        own = min(natural(e, lang) or width, width)
        across, corner = body(e, lang) if isinstance(e, Cells) else (own, 0)
        left = x + _offset(e, own, width) + corner + (across - wide) / 2
        x, width = max(4, min(left, WIDTH - 4 - wide)), wide
    return _put(text, x, y, width, lang, found) + 4


def _offset(e: Figure, own: float, width: float) -> float:
    return (width - own) * {"start": 0.0, "end": 1.0}.get(e.at, 0.5)


def _column(e: Column, x: float, y: float, width: float, lang: str, found: list[Placed]) -> float:
    frame = Placed(e, x, y, width, 0)
    if e.line or e.name:
        found.append(frame)
    low, first = y + e.pad, len(found)
    for i, child in enumerate(e.children):
        low += (e.gap if i else 0) + _put(child, x + e.pad, low + (e.gap if i else 0), width - 2 * e.pad, lang, found)
    frame.height = low + e.pad - y
    named = {p.element.name: p for p in found[first:] if isinstance(p.element, Figure) and p.element.name}
    found += [_routed(link, named) for link in e.links]
    return frame.height


def _row(e: Across, x: float, y: float, width: float, lang: str, found: list[Placed]) -> float:
    slots = _slots(e, width, lang)
    heights = [_put(child, 0, 0, slot, lang, []) for child, slot in zip(e.children, slots, strict=True)]
    for child, slot, high in zip(e.children, slots, heights, strict=True):
        _put(child, x, y + (0 if e.top else (max(heights) - high) / 2), slot, lang, found)
        x += slot + e.gap
    return max(heights)


def _slots(e: Across, width: float, lang: str) -> list[float]:
    room = width - e.gap * (len(e.children) - 1)
    if e.shares:
        return [room * share / sum(e.shares) for share in e.shares]
    own = [*e.widths] if e.widths else [natural(child, lang) for child in e.children]
    left, open_ = room - sum(w for w in own if w is not None), own.count(None)
    if open_:
        return [left / open_ if w is None else w for w in own]
    if e.widths:
        return [w or 0 for w in own]
    found = [w or 0 for w in own]
    return [w + left / len(own) for w in found] if left > 0 else [w * room / sum(found) for w in found]


def cells_corner(p: Placed, e: Cells, lang: str) -> Point:
    """Return the upper left corner of the first cell."""
    across, corner = body(e, lang)
    return p.x + corner + (p.width - corner - across) / 2, p.y + (LINE if e.columns else 0)


def _routed(link: Link, named: dict[str, Placed]) -> Placed:
    """Return a link with its way: bends lie halfway between elements, or beside both."""
    start, end = named[link.start], named[link.end]
    a, b = start.side(link.leave), end.side(link.enter)
    across = {"left", "right"}
    if link.straight:
        points = [a, b]
    elif link.leave == link.enter:
        right = link.leave == "right"
        beside = max(a[0], b[0]) + link.away if right else min(a[0], b[0]) - link.away
        points = [a, (beside, a[1]), (beside, b[1]), b]
    elif link.leave in across and link.enter in across:
        middle = (a[0] + b[0]) / 2
        points = [a, (middle, a[1]), (middle, b[1]), b]
    elif link.leave in across:
        points = [a, (b[0], a[1]), b]
    elif link.enter in across:
        points = [a, (a[0], b[1]), b]
    elif start.x < b[0] < start.x + start.width:
        points = [(b[0], a[1]), b]
    elif abs(a[0] - b[0]) < NEAR:
        points = [a, (a[0], b[1])]
    else:
        middle = (a[1] + b[1]) / 2 - 2
        points = [a, (a[0], middle), (b[0], middle), b]
    return Placed(link, 0, 0, 0, 0, tuple(points[::-1] if link.back else points))
