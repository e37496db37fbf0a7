"""Every picture is fresh, whole and readable: its words lie within it, and no two of them lie on each other."""

import json
from itertools import combinations
from xml.etree import ElementTree

import pytest

from book.pictures.drawn import SVG, box_of, numbers, overlap, texts
from byhand.book.pictures import PICTURES
from byhand.book.pictures.canvas import SIZE, WIDTH
from byhand.book.pictures.scene import layout
from byhand.book.pictures.scene.charts import Chart, Mark
from byhand.book.pictures.scene.elements import Box, Cells
from byhand.book.pictures.scene.measure import ticks
from byhand.book.words.language import say
from pages import filling

SMALLEST = 10  # of letters: nine pixels on a phone of 360
DRAWN = [(name, lang) for name in PICTURES for lang in ("en", "zh")]


@pytest.mark.parametrize(("name", "lang"), DRAWN)
def test_it_is_fresh(name, lang):
    path = PICTURES[name].path(filling.docs(), lang)
    assert path.read_text(encoding="utf-8") == PICTURES[name].svg(lang), "stale; run: python docs/build"


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


@pytest.mark.parametrize(("name", "lang"), DRAWN)
def test_its_description_has_every_number_that_it_shows(name, lang):
    picture = PICTURES[name]
    told = numbers(f"{picture.title.said(lang)} {picture.alt(lang)}")
    missing = [n for words in texts(name, lang) if words not in names(name, lang) for n in numbers(words)]
    assert not {*missing} - {*told}


def names(name, lang):
    """Return the words of scales, and the names of rows and columns, that only say where numbers stand."""
    found = set()
    for placed in layout.placed(PICTURES[name].scene(), WIDTH, lang)[0]:
        match placed.element:
            case Chart() as e:
                scales = [say(words, lang) for several in (e.x_ticks, e.y_ticks) for words in ticks(several).values()]
                found |= {*scales, say(e.x_words, lang), *(mark.number for mark in e.marks if isinstance(mark, Mark))}
            case Box() as e if e.wide == e.high:
                found |= {*e.lines}
            case Cells() as e:
                found |= {say(words, lang) for words in (*e.rows, *e.columns)}
                found |= {str(n) for row in e.values for n in row} if e.counted else set()
    return found


@pytest.mark.parametrize("name", PICTURES)
def test_it_is_plain_values_too(name):
    told = json.loads(json.dumps(PICTURES[name].as_json(), allow_nan=False))
    assert told["scene"]["kind"] in ("column", "across", "chart")
