"""Sizes of a scene's elements: as wide and high as their words and numbers need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import LINE, SMALL, TINY, text_width
from byhand.book.pictures.scene import elements as of
from byhand.book.pictures.scene.charts import Bars, Chart, Level, Polyline, Ticks
from byhand.book.words.language import Said, Words, say

TICK, BELOW, ABOVE = 18, 16, 17  # pixels: of a scale's numbers, of its words, of a number beyond a bar
SCALE = 120.0  # pixels of a scale of colours
CLOSING = set("，。：；、）」”,.;:)!?％%")  # letters that never begin a line


def natural(e: of.Figure, lang: str) -> float | None:
    """Return the width that an element needs, or None if it takes what there is."""
    match e:
        case of.Caption():
            return text_width(say(e.words, lang), e.size) + 0.01
        case of.Space():
            return e.wide
        case of.Box():
            return e.wide or None
        case of.Cells():
            return sum(body(e, lang))
        case of.Arrow():
            words = max(text_width(say(w, lang), TINY) for w in (e.above, e.below))
            return max(words, 24) if e.right else 10
        case of.Key():
            return sum(sign_width(sign, lang) for sign in e.signs) + 16 * (len(e.signs) - 1)
        case Chart():
            return e.wide or None
        case of.Column():
            own = [natural(child, lang) for child in e.children]
            return None if None in own else max((w or 0 for w in own), default=0.0) + 2 * e.pad
        case of.Across() if not e.widths and not e.shares:
            own = [natural(child, lang) for child in e.children]
            return None if None in own else sum(w or 0 for w in own) + e.gap * (len(own) - 1)
        case _:
            return None


def height(e: of.Figure, width: float, lang: str) -> float:
    """Return the height that an element needs at a width."""
    match e:
        case of.Caption():
            return LINE * len(wrapped(say(e.words, lang), width, e.size, lang))
        case of.Space():
            return e.high
        case of.Box():
            lines = len(box_lines(e))
            return max(e.high, LINE * lines + 6) if lines > 1 else e.high
        case of.Cells():
            return len(e.values) * cell_of(e, lang)[1] + (LINE if e.columns else 0)
        case of.Arrow():
            return 2 * LINE + 8 if e.above or e.below else 10 if e.right else e.long or 14
        case of.Length():
            return 12
        case of.Key():
            return LINE * (sign_places(e, width, lang)[-1][2] + 1) + 4
        case Chart():
            return chart_area(e, width, lang)[1] + e.high + _under(e)
        case _:
            return 0


def box_lines(e: of.Box) -> Sequence[Said]:
    """Return a box's lines of text."""
    if isinstance(e.lines, str):
        return e.lines.split("\n")
    return (e.lines,) if isinstance(e.lines, Words) else e.lines


def cell_words(e: of.Cells, value: float | Said, lang: str) -> str:
    """Return what a cell shows."""
    if not e.shown:
        return ""
    if not isinstance(value, int | float):
        return say(value, lang)
    written = [decimal(value, digits) for digits in (3, 2, 1)]
    room = e.cell[0] - 2 if e.cell[0] else float("inf")
    return next((words for words in written if text_width(words, e.size) < room), _power(value))


def _power(value: float) -> str:
    """Write a number in the least room."""
    return f"{value:.0e}".replace("e-0", "e−").replace("e+0", "e")


def cell_of(e: of.Cells, lang: str) -> tuple[float, float]:
    """Return the width and height of a cell."""
    if e.cell[0]:
        return e.cell
    words = [cell_words(e, value, lang) for row in e.values for value in row]
    wide = max([34.0, *(text_width(w, e.size) + 5 for w in words)])
    return wide, e.cell[1] or (30.0 if e.fill == of.HEAT else 20.0)


def body(e: of.Cells, lang: str) -> tuple[float, float]:
    """Return the width of all cells, and of the names at their left."""
    names = max((text_width(say(words, lang), TINY) + 6 for words in e.rows), default=0.0)
    return max(map(len, e.values)) * cell_of(e, lang)[0], e.corner or names


def sign_width(sign: of.Sign, lang: str) -> float:
    """Return the width of an entry of a key."""
    ends = sum(text_width(decimal(end, 3), TINY) + 6 for end in sign.ends)
    icon = {"square": 12, "hidden": 24, "scale": SCALE + ends}.get(sign.kind, 20)
    return icon + 6 + text_width(say(sign.words, lang), SMALL)


def sign_places(e: of.Key, width: float, lang: str) -> list[tuple[of.Sign, float, int]]:
    """Return a key's entries with their distance from the left and their line."""
    found: list[tuple[of.Sign, float, int]] = []
    x, line = 0.0, 0
    for sign in e.signs:
        wide = sign_width(sign, lang)
        if x and x + wide > width:
            x, line = 0.0, line + 1
        found.append((sign, x, line))
        x += wide + 16
    return found


def ticks(e: Ticks) -> dict[float, Said]:
    """Return the places and the words of a scale."""
    return {x: e[x] for x in e} if isinstance(e, Mapping) else {x: decimal(x) for x in e}


def bar_words(e: Bars) -> Sequence[Said]:
    """Return the words beyond the end of each bar."""
    return e.words if e.words is not None else [decimal(float(value), e.digits) for value in e.values]


def keyed(e: Chart) -> of.Key | None:
    """Return the key to a plot's curves."""
    curves = [mark for mark in e.marks if isinstance(mark, Polyline) and mark.words]
    return of.Key([of.Sign(c.words, c.colour, "dashed" if c.dashed else "line") for c in curves]) if curves else None


def chart_area(e: Chart, width: float, lang: str) -> tuple[float, float, float]:
    """Return the room at the left of a plot's scales, above them, and at their right."""

    def room(words: Said) -> float:
        return text_width(say(words, lang), TINY)

    left = max((room(words) + 8 for words in ticks(e.y_ticks).values()), default=2.0)
    x_ticks = list(ticks(e.x_ticks).items())
    right = room(x_ticks[-1][1]) / 2 if x_ticks and x_ticks[-1][0] == e.xs[1] else 2.0
    right = max([right, *(room(m.words) + 6 for m in e.marks if isinstance(m, Level) and m.beside)])
    if x_ticks and x_ticks[0][0] == e.xs[0]:
        left = max(left, room(x_ticks[0][1]) / 2)
    key = keyed(e)
    above = ABOVE if any(isinstance(mark, Bars) for mark in e.marks) else 8 if e.y_ticks else 2
    return left, above + (height(key, width, lang) + 2 if key else 0), right


def _under(e: Chart) -> float:
    """Return the room below a plot's scales."""
    negative = any(min(mark.values) < 0 for mark in e.marks if isinstance(mark, Bars))
    return (ABOVE if negative else 2) + (TICK if e.x_ticks else 0) + (BELOW if e.x_words else 0)


def wrapped(words: str, width: float, size: float, lang: str) -> list[str]:
    """Return words on as many lines as they need."""
    if text_width(words, size) <= width + 0.02:
        return [words]
    lines = [""]
    for piece in _pieces(words, lang):
        if lines[-1] and text_width(lines[-1] + piece.rstrip(), size) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _pieces(words: str, lang: str) -> Iterator[str]:
    """Return the parts of a line after which it may break: words, and Chinese letters before no closing mark."""
    piece = ""
    for here, after in zip(words, f"{words[1:]} ", strict=True):
        piece += here
        wide = lang == "zh" and (ord(here) > 0x2E7F or ord(after) > 0x2E7F) and after not in CLOSING
        if here == " " or wide:
            yield piece
            piece = ""
    if piece:
        yield piece
