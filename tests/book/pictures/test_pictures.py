"""Every picture is fresh, whole and readable: its words lie within it, and no two of them lie on each other."""

from itertools import pairwise
from xml.etree.ElementTree import Element

from book.pictures.drawn import SVG, assert_readable, box_of, numbers, overlap, picture, texts
from byhand.book.pictures.canvas import SIZE, WIDTH
from byhand.book.pictures.picture import placed
from byhand.book.pictures.scene.cells import Cells
from byhand.book.pictures.scene.charts import Chart, ticks
from byhand.book.pictures.scene.elements import Box
from byhand.book.pictures.scene.marks import Mark
from byhand.book.words.language import say
from every import every
from pages import filling
from pictures import PICTURES

SMALLEST = 10  # of letters: nine pixels on a phone of 360
DRAWN = [(name, lang) for name in PICTURES for lang in ("en", "zh")]


@every(DRAWN)
def test_it_is_fresh(name, lang):
    path = PICTURES[name].path(filling.docs(), lang)
    assert path.read_text(encoding="utf-8") == PICTURES[name].svg(lang), "stale; run: python docs/build"


@every(DRAWN)
def test_its_words_can_be_read(name, lang):
    svg = picture(name, lang)
    assert float(svg.get("width", "")) <= WIDTH
    assert all(float(text.get("font-size", SIZE)) >= SMALLEST for text in svg.iter(f"{SVG}text"))
    assert_readable(svg)


@every(DRAWN)
def test_its_shapes_lie_within_it(name, lang):
    svg = picture(name, lang)
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


def structure(name, lang):
    """Return a picture's elements; none of a chart, whose curves may pass words."""
    return Element(SVG) if "Chart(" in repr(PICTURES[name].scene()) else picture(name, lang)


@every(DRAWN)
def test_words_fit_their_boxes(name, lang):
    svg = structure(name, lang)
    boxes = [tuple(float(box.get(k, "")) for k in ("x", "y", "width", "height")) for box in svg.iter(f"{SVG}rect")]
    for text in svg.iter(f"{SVG}text"):
        if text.get("text-anchor") != "middle":
            continue
        x, y, size = (float(text.get(k, SIZE)) for k in ("x", "y", "font-size"))
        first, _, last, _ = box_of(text)
        for left, top, width, high in boxes:
            if left <= x <= left + width and top <= y - size / 3 <= top + high:
                assert left - 1 <= first, text.text
                assert last <= left + width + 1, text.text


@every(DRAWN)
def test_lines_do_not_run_through_words(name, lang):
    svg = structure(name, lang)
    for line in svg.iter(f"{SVG}polyline"):
        points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
        for (ax, ay), (bx, by) in pairwise(points):
            for text in svg.iter(f"{SVG}text"):
                left, top, right, _ = box_of(text)
                letters, way = (left, top, right, float(text.get("y", ""))), sorted([ax, bx]) + sorted([ay, by])
                assert not overlap(letters, (way[0], way[2], way[1], way[3])), text.text


@every(DRAWN)
def test_its_words_are_in_its_language(name, lang):
    words = PICTURES[name].alt(lang)
    assert len(words) > 20
    chinese = any("\u4e00" <= letter <= "\u9fff" for letter in words)
    assert chinese == (lang == "zh")


@every(DRAWN)
def test_its_description_has_every_number_that_it_shows(name, lang):
    picture = PICTURES[name]
    told = numbers(f"{picture.title.said(lang)} {picture.alt(lang)}")
    missing = [n for words in texts(name, lang) if words not in names(name, lang) for n in numbers(words)]
    assert not {*missing} - {*told}


def names(name, lang):
    """Return the words of scales, and the names of rows and columns, that only say where numbers stand."""
    found = set()
    for p in placed(PICTURES[name].scene(), lang)[0]:
        match p.element:
            case Chart() as e:
                scales = [say(words, lang) for several in (e.x_ticks, e.y_ticks) for words in ticks(several).values()]
                found |= {*scales, say(e.x_words, lang), *(mark.number for mark in e.marks if isinstance(mark, Mark))}
            case Box() as e if e.wide == e.high:
                found |= {*e.lines}
            case Cells() as e:
                found |= {say(words, lang) for words in (*e.rows, *e.columns)}
                found |= {str(n) for row in e.values for n in row} if e.counted else set()
    return found
