"""Cells of scenes as SVG: matrices, heat maps and stretches of memory."""

from __future__ import annotations

from math import isfinite

from byhand.book.pictures.canvas import AMBER, INK, TINY, WHITE, Canvas
from byhand.book.pictures.scene.colours import ink, tint
from byhand.book.pictures.scene.elements import HEAT, Cells
from byhand.book.pictures.scene.layout import Placed, cells_corner
from byhand.book.pictures.scene.measure import cell_of, cell_words


def draw_cells(canvas: Canvas, p: Placed, e: Cells) -> None:
    """Draw cells with their names and frames."""
    (x, y), (wide, high) = cells_corner(p, e, canvas.lang), cell_of(e, canvas.lang)
    plain = isinstance(e.fill, str) and e.fill != HEAT
    if plain and len(e.values):
        canvas.box(x, y, wide * len(e.values[0]), high * len(e.values), fill=str(e.fill))
    for j, words in enumerate(e.columns):
        canvas.text(x + (j + 0.5) * wide, y - 5, words, at="middle", size=TINY)
    sizes = [abs(v) for row in e.values for v in row if isinstance(v, (int, float)) and isfinite(v)]
    deepest = e.largest or max(sizes, default=0) or 1
    for i, row in enumerate(e.values):
        if e.rows:
            canvas.text(x - 6, y + (i + 0.5) * high + 4, e.rows[i], at="end", size=TINY)
        for j, value in enumerate(row):
            corner = x + j * wide, y + i * high, wide, high
            fill = tint(float(value) / deepest) if e.fill == HEAT else e.fill if plain else e.fill[i][j]
            if (i, j) in e.hidden:
                crossed(canvas, *corner)
            else:
                _cell(canvas, corner, cell_words(e, value, canvas.lang), str(fill), e)
    for frame in e.frames:
        (top, left), (bottom, right) = frame.first, frame.last
        place = x + left * wide, y + top * high, (right - left + 1) * wide, (bottom - top + 1) * high
        # Without a colour it is bright and dark, to stand out from every colour and background.
        for out, colour in ((0.0, frame.colour),) if frame.colour else ((1.5, AMBER), (-0.5, INK)):
            left_, top_, across, down = place
            around = left_ - out, top_ - out, across + 2 * out, down + 2 * out
            canvas.box(*around, line=colour, round_by=3, thick=2.5 if frame.colour else 1.8)


def _cell(canvas: Canvas, place: tuple[float, float, float, float], words: str, fill: str, e: Cells) -> None:
    x, y, wide, high = place
    gap = 1 if wide > 20 else 0.5
    if not isinstance(e.fill, str) or e.fill == HEAT:
        canvas.box(x + gap, y + gap, wide - 2 * gap, high - 2 * gap, fill=fill, line=fill, round_by=2)
    colour = ink(fill) if e.fill == HEAT else WHITE
    canvas.text(x + wide / 2, y + high / 2 + 4, words, colour=colour, at="middle", size=e.size)


def crossed(canvas: Canvas, x: float, y: float, wide: float, high: float) -> None:
    """Draw a cell that a mask hides: hatched, without a background."""
    canvas.box(x + 1, y + 1, wide - 2, high - 2, round_by=2)
    for part in range(1, 6):
        reach = part * (wide + high - 4) / 6
        right, up = min(reach, wide - 2), min(reach, high - 2)
        left, down = reach - up, reach - right
        canvas.line([(x + 1 + left, y + high - 1 - up), (x + 1 + right, y + high - 1 - down)], thick=0.6)
