"""Scenes as SVG: each element is drawn in the place that `layout` gave it."""

from __future__ import annotations

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREY, LINE, RUST, SMALL, TINY, WHITE, Canvas, text_width
from byhand.book.pictures.scene import elements as of
from byhand.book.pictures.scene.cells import crossed, draw_cells
from byhand.book.pictures.scene.charting import draw_chart
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.colours import tint
from byhand.book.pictures.scene.layout import Placed, placed
from byhand.book.pictures.scene.measure import SCALE, box_lines, sign_places, wrapped
from byhand.book.words.language import say


def draw(canvas: Canvas, root: of.Figure) -> None:
    """Draw a scene on a canvas."""
    found, canvas.y = placed(root, canvas.width, canvas.lang)
    for p in found:
        _draw(canvas, p)


def _draw(canvas: Canvas, p: Placed) -> None:
    match p.element:
        case of.Caption() as e:
            _text(canvas, p, e)
        case of.Box() as e:
            _box(canvas, p, e)
        case of.Cells() as e:
            draw_cells(canvas, p, e)
        case of.Length() as e:
            _length(canvas, p, e)
        case of.Arrow() as e:
            _arrow(canvas, p, e)
        case of.Key() as e:
            for sign, x, line in sign_places(e, p.width, canvas.lang):
                _sign(canvas, p.x + x, p.y + 13 + line * LINE, sign)
        case Chart() as e:
            key, left = draw_chart(canvas, p, e)
            if key:
                _draw(canvas, Placed(key, p.x + left, p.y, p.width - left, LINE))
        case of.Link() as e:
            _link(canvas, p, e)
        case of.Column() as e if e.line:
            canvas.box(p.x, p.y, p.width, p.height, line=e.line, round_by=8)
        case _:
            pass


def _text(canvas: Canvas, p: Placed, e: of.Caption) -> None:
    x = p.x + p.width * {"middle": 0.5, "end": 1}.get(e.at, 0)
    for i, line in enumerate(wrapped(say(e.words, canvas.lang), p.width, e.size, canvas.lang)):
        canvas.text(x, p.y + 12 + i * LINE, line, at=e.at or "start", size=e.size, bold=e.bold, mono=e.mono)


def _box(canvas: Canvas, p: Placed, e: of.Box) -> None:
    place, fill = (p.x, p.y, p.width, p.height), e.fill or "none"
    canvas.box(*place, fill=fill, line=e.line, round_by=e.round_by, dashed=e.dashed)
    lines, colour = box_lines(e), WHITE if e.fill else GREY
    top = p.y + (p.height - LINE * len(lines)) / 2 + 12
    for i, words in enumerate(lines):
        bold = isinstance(e.lines, list | tuple) and i == 0
        canvas.text(p.x + p.width / 2, top + i * LINE, words, colour=colour, at="middle", size=e.size, bold=bold)


def _length(canvas: Canvas, p: Placed, e: of.Length) -> None:
    across = p.width / ((e.high - e.low) or 1.0)
    zero, length = p.x - e.low * across, abs(e.value) * across
    if length >= 0.1:
        left, colour = (zero, BLUE) if e.value > 0 else (zero - length, RUST)
        canvas.box(left, p.y + 2, length, 8, fill=colour, round_by=min(2, length / 2))
    canvas.line([(zero, p.y), (zero, p.y + 12)])


def _arrow(canvas: Canvas, p: Placed, e: of.Arrow) -> None:
    x, y = p.x + p.width / 2, p.y + p.height / 2
    if e.right:
        canvas.arrow([(p.x, y), (p.x + p.width, y)])
        canvas.text(x, y - 6, e.above, at="middle", size=TINY)
        canvas.text(x, y + 15, e.below, at="middle", size=TINY)
    else:
        canvas.arrow([(x, p.y), (x, p.y + p.height)])


def _sign(canvas: Canvas, x: float, y: float, sign: of.Sign) -> None:
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


def _link(canvas: Canvas, p: Placed, e: of.Link) -> None:
    points = list(p.points)
    (canvas.arrow if e.head else canvas.line)(points, colour=e.colour, thick=e.thick, dashed=e.dashed)
    (ax, ay), (bx, by) = points[1:3] if len(points) > 2 else points
    canvas.text(min(ax, bx) - 8, (ay + by) / 2, e.words, at="end", bold=True)
