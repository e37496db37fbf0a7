"""Pictures of structure: words fit their boxes, and no line runs through words."""

from itertools import pairwise

import pytest

from book.pictures.drawn import SVG, picture
from byhand.book.pictures import PICTURES
from byhand.book.pictures.canvas import SIZE, text_width

CHARTS = [name for name in PICTURES if "Chart(" in repr(PICTURES[name].scene())]  # curves may pass words
DRAWN = [(name, lang) for name in PICTURES if name not in CHARTS for lang in ("en", "zh")]


@pytest.mark.parametrize(("name", "lang"), DRAWN)
def test_words_fit_their_boxes(name, lang):
    svg = picture(name, lang)
    boxes = [tuple(float(box.get(k, "")) for k in ("x", "y", "width", "height")) for box in svg.iter(f"{SVG}rect")]
    for text in svg.iter(f"{SVG}text"):
        if text.get("text-anchor") != "middle":
            continue
        x, y, size = float(text.get("x", "")), float(text.get("y", "")), float(text.get("font-size", SIZE))
        around = [b for b in boxes if b[0] <= x <= b[0] + b[2] and b[1] <= y - size / 3 <= b[1] + b[3]]
        half = text_width(text.text or "", size) / 2
        for left, _, width, _ in around:
            assert left - 1 <= x - half, text.text
            assert x + half <= left + width + 1, text.text


@pytest.mark.parametrize(("name", "lang"), DRAWN)
def test_lines_do_not_run_through_words(name, lang):
    svg = picture(name, lang)
    for line in svg.iter(f"{SVG}polyline"):
        points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
        for (ax, ay), (bx, by) in pairwise(points):
            for text in svg.iter(f"{SVG}text"):
                size = float(text.get("font-size", SIZE))
                width = text_width(text.text or "", size)
                anchor = {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor", "start")]
                left, bottom = float(text.get("x", "")) - anchor * width, float(text.get("y", ""))
                beside = max(ax, bx) <= left or left + width <= min(ax, bx)
                apart = max(ay, by) <= bottom - 0.75 * size or bottom <= min(ay, by)
                assert beside or apart, text.text
