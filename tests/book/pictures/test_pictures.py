"""Every picture is fresh, whole and readable: its words lie within it, and no two of them lie on each other."""

from itertools import combinations
from xml.etree import ElementTree

import pytest

from book.pictures.drawn import SVG, box_of, overlap
from byhand.book.pages import filling
from byhand.book.pictures import PICTURES
from byhand.book.pictures.canvas import SIZE, WIDTH

SMALLEST = 10  # of letters: nine pixels on a phone of 360
DRAWN = [(name, lang) for name in PICTURES for lang in ("en", "zh")]


@pytest.mark.parametrize(("name", "lang"), DRAWN)
def test_it_is_fresh(name, lang):
    path = PICTURES[name].path(filling.docs(), lang)
    assert path.read_text(encoding="utf-8") == PICTURES[name].svg(lang), "stale; run: python -m byhand.book.pages"


@pytest.mark.parametrize(("name", "lang"), DRAWN)
def test_its_words_can_be_read(name, lang):
    svg = ElementTree.fromstring(PICTURES[name].svg(lang))
    width, height = float(svg.get("width", "")), float(svg.get("height", ""))
    assert width <= WIDTH
    boxes = {}
    for text in svg.iter(f"{SVG}text"):
        assert float(text.get("font-size", SIZE)) >= SMALLEST
        box = box_of(text)
        assert box[0] >= 0, text.text
        assert box[2] <= width, text.text
        assert box[1] >= 0, text.text
        assert box[3] <= height, text.text
        boxes[text] = box
    for a, b in combinations(boxes, 2):
        assert not overlap(boxes[a], boxes[b]), f"{a.text!r} lies on {b.text!r}"


@pytest.mark.parametrize(("name", "lang"), DRAWN)
def test_its_shapes_lie_within_it(name, lang):
    svg = ElementTree.fromstring(PICTURES[name].svg(lang))
    width, height = float(svg.get("width", "")), float(svg.get("height", ""))
    for shape in svg.iter():
        for corner in shape.get("points", "").split():
            x, y = map(float, corner.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height
    for box in svg.iter(f"{SVG}rect"):
        x, y, wide, high = (float(box.get(k, "")) for k in ("x", "y", "width", "height"))
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + high <= height


@pytest.mark.parametrize(("name", "lang"), DRAWN)
def test_its_words_are_in_its_language(name, lang):
    words = PICTURES[name].alt(lang)
    assert len(words) > 20
    chinese = any("\u4e00" <= letter <= "\u9fff" for letter in words)
    assert chinese == (lang == "zh")
