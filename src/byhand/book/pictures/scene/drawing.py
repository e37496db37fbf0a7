"""Scenes as SVG: each element is drawn in the place that `layout` gave it."""

from __future__ import annotations

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
)
from byhand.book.pictures.scene.cells import crossed, draw_cells
from byhand.book.pictures.scene.charting import draw_chart
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.colours import tint
from byhand.book.pictures.scene.elements import (
    Areas,
    Arrow,
    Box,
    Caption,
    Cells,
    Column,
    Dial,
    Disc,
    Divider,
    Figure,
    Holders,
    Key,
    Length,
    Link,
    Sign,
)  # fmt: skip
from byhand.book.pictures.scene.layout import Placed, placed
from byhand.book.pictures.scene.measure import SCALE, box_lines, sign_places, wrapped
from byhand.book.words.language import say

SLANT = 4  # pixels by which a cut between two colours leans


def draw(canvas: Canvas, root: Figure) -> None:
    """Draw a scene on a canvas."""
    found, canvas.y = placed(root, canvas.width, canvas.lang)
    for p in found:
        _draw(canvas, p)


def _draw(canvas: Canvas, p: Placed) -> None:
    match p.element:
        case Caption() as e:
            _text(canvas, p, e)
        case Divider():
            canvas.line([(p.x, p.y + LINE / 2), (p.x + p.width, p.y + LINE / 2)], dashed=True)
        case Box() as e:
            _box(canvas, p, e)
        case Cells() as e:
            draw_cells(canvas, p, e)
        case Holders() as e:
            _holders(canvas, p, e)
        case Length() as e:
            _length(canvas, p, e)
        case Areas() as e:
            for i in range(e.count):
                canvas.box(p.x + i * (e.wide + 5), p.y, e.wide, e.high, fill=e.fill, round_by=1)
        case Dial() as e:
            x, y = p.x + e.radius, p.y + e.radius
            canvas.ring(x, y, e.radius)
            for (right, up), colour in e.arrows:
                tip = x + (e.radius - 2) * right, y - (e.radius - 2) * up
                canvas.arrow([(x, y), tip], colour=colour, thick=2)
        case Disc() as e:
            _node(canvas, p, e)
        case Arrow() as e:
            _arrow(canvas, p, e)
        case Key() as e:
            for sign, x, line in sign_places(e, p.width, canvas.lang):
                _sign(canvas, p.x + x, p.y + 13 + line * LINE, sign)
        case Chart() as e:
            key, left = draw_chart(canvas, p, e)
            if key:
                _draw(canvas, Placed(key, p.x + left, p.y, p.width - left, LINE))
        case Link() as e:
            _link(canvas, p, e)
        case Column() as e if e.line:
            canvas.box(p.x, p.y, p.width, p.height, line=e.line, round_by=8)
        case _:
            pass


def _anchor(p: Placed, at: str) -> tuple[float, str]:
    at = at or "start"
    return p.x + p.width * {"start": 0, "middle": 0.5, "end": 1}[at], at


def _text(canvas: Canvas, p: Placed, e: Caption) -> None:
    x, at = _anchor(p, e.at)
    for i, line in enumerate(wrapped(say(e.words, canvas.lang), p.width, e.size, canvas.lang)):
        canvas.text(
            x, p.y + 12 + i * LINE, line, at=at, size=e.size, bold=e.bold, colour=e.colour, mono=e.mono
        )  # fmt: skip


def _box(canvas: Canvas, p: Placed, e: Box) -> None:
    canvas.box(
        p.x, p.y, p.width, p.height, fill=e.fill or "none", line=e.line, round_by=e.round_by, dashed=e.dashed
    )  # fmt: skip
    lines, colour = box_lines(e), WHITE if e.fill else GREY
    top = p.y + (p.height - LINE * len(lines)) / 2 + 12
    for i, words in enumerate(lines):
        bold = isinstance(e.lines, list | tuple) and i == 0
        canvas.text(p.x + p.width / 2, top + i * LINE, words, colour=colour, at="middle", size=e.size, bold=bold)


def _holders(canvas: Canvas, p: Placed, e: Holders) -> None:
    each, top, bottom = (p.width - 2) / len(e.parts), p.y + 1, p.y + p.height - 1
    for i, (words, colour) in enumerate(e.parts):
        left, right = p.x + 1 + i * each, p.x + 1 + (i + 1) * each
        before, after = (SLANT if i else 0), (SLANT if i + 1 < len(e.parts) else 0)
        canvas.area(
            [(left + before, top), (right + after, top), (right - after, bottom), (left - before, bottom)], colour
        )
        middle = (top + bottom) / 2 + 4.5
        canvas.text(left + each / 2, middle, words, colour=WHITE, at="middle", bold=True)


def _length(canvas: Canvas, p: Placed, e: Length) -> None:
    across = p.width / ((e.high - e.low) or 1.0)
    zero, length = p.x - e.low * across, abs(e.value) * across
    if length >= 0.1:
        left, colour = (zero, BLUE) if e.value > 0 else (zero - length, RUST)
        canvas.box(left, p.y + 2, length, 8, fill=colour, round_by=min(2, length / 2))
    canvas.line([(zero, p.y), (zero, p.y + 12)])


def _node(canvas: Canvas, p: Placed, e: Disc) -> None:
    x, y = p.x + e.radius, p.y + e.radius
    if e.fill:
        canvas.dot(x, y, e.radius, e.fill)
        canvas.text(x, y + 4, e.words, colour=WHITE, at="middle", size=TINY, bold=True)
    else:
        canvas.ring(x, y, e.radius, line=e.line)
        canvas.text(x, y + SIZE * 0.35, e.words, at="middle", bold=True)


def _arrow(canvas: Canvas, p: Placed, e: Arrow) -> None:
    x, y = p.x + p.width / 2, p.y + p.height / 2
    if e.right:
        canvas.arrow([(p.x, y), (p.x + p.width, y)])
        canvas.text(x, y - 6, e.above, at="middle", size=TINY)
        canvas.text(x, y + 15, e.below, at="middle", size=TINY)
    else:
        canvas.arrow([(x, p.y), (x, p.y + p.height)])


def _sign(canvas: Canvas, x: float, y: float, sign: Sign) -> None:
    """Draw an entry of a key, whose words stand on y."""
    wide = 20.0
    if sign.kind == "square":
        wide = 12
        canvas.box(x, y - 10, wide, 12, fill=sign.colour)
    elif sign.kind == "hidden":
        wide = 24
        crossed(canvas, x, y - 12, wide, 16)
    elif sign.kind == "scale":
        wide = _scale(canvas, x, y - 9, *sign.ends)
    else:
        dashed = sign.kind == "dashed"
        canvas.line([(x, y - 4), (x + wide, y - 4)], colour=sign.colour, thick=2 if dashed else 3, dashed=dashed)
    canvas.text(x + wide + 6, y, sign.words, size=SMALL)


def _scale(canvas: Canvas, x: float, y: float, low: float, high: float) -> float:
    """Draw a strip of the colours from one number to another, with the numbers at its ends; return its width."""
    deepest, steps = max(abs(low), abs(high)) or 1.0, 24
    ends = [decimal(end, 3) for end in (low, high)]
    before, after = (text_width(end, TINY) + 6 for end in ends)
    canvas.text(x, y + 9, ends[0], size=TINY)
    for k in range(steps):
        value, left = low + (high - low) * (k + 0.5) / steps, x + before + k * SCALE / steps
        right = left + SCALE / steps + 0.4
        canvas.area([(left, y), (right, y), (right, y + 10), (left, y + 10)], tint(value / deepest))
    canvas.text(x + before + SCALE + 6, y + 9, ends[1], size=TINY)
    return before + SCALE + after


def _link(canvas: Canvas, p: Placed, e: Link) -> None:
    points = list(p.points)
    if e.head:
        canvas.arrow(points, colour=e.colour, thick=e.thick, dashed=e.dashed)
    else:
        canvas.line(points, colour=e.colour, thick=e.thick, dashed=e.dashed)
    (ax, ay), (bx, by) = points[1:3] if len(points) > 2 else points
    canvas.text(min(ax, bx) - 8, (ay + by) / 2, e.words, at="end", bold=True)
