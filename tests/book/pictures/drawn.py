"""The words in a picture, their places, and its numbers."""

import re
from itertools import combinations
from xml.etree import ElementTree

from byhand.book.pictures.canvas import SIZE, text_width
from pictures import PICTURES

Box = tuple[float, float, float, float]
SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"(?<![\w.])−?\d+(?:\.\d+)?(?:e[−-]\d+)?(?!\w|\.\d)")


def picture(name, lang="en"):
    """Return a picture's elements."""
    return ElementTree.fromstring(PICTURES[name].svg(lang))


def texts(name, lang="en"):
    """Return every line of text, in the order in which it was drawn."""
    return [text.text or "" for text in picture(name, lang).iter(f"{SVG}text")]


def numbers(text):
    """Return the numbers of a text, as they are written."""
    return NUMBER.findall(text)


def said(name, lang="en"):
    """Return the numbers that the alternative text gives for each name: `S = [[0, 1]]; A = ...`."""
    return {m[1]: numbers(m[2]) for m in re.finditer(r"([∂\w.]+) = ([^=;；]*)", PICTURES[name].alt(lang))}


def box_of(text: ElementTree.Element) -> Box:
    """Return left, top, right, bottom of a line of text, as wide as its letters may be."""
    size = float(text.get("font-size", SIZE))
    width = text_width(text.text or "", size)
    left = float(text.get("x", "")) - {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor", "start")] * width
    bottom = float(text.get("y", ""))
    return left, bottom - 0.75 * size, left + width, bottom + 0.2 * size


def overlap(a: Box, b: Box) -> bool:
    """Say whether two boxes share more than an edge."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def assert_readable(svg: ElementTree.Element) -> None:
    """Raise unless all words of a picture lie within it, and no two of them on each other."""
    boxes = {text: box_of(text) for text in svg.iter(f"{SVG}text")}
    for text, (left, top, right, bottom) in boxes.items():
        assert 0 <= left <= right <= float(svg.get("width", "")), text.text
        assert 0 <= top <= bottom <= float(svg.get("height", "")), text.text
    for a, b in combinations(boxes, 2):
        assert not overlap(boxes[a], boxes[b]), f"{a.text!r} lies on {b.text!r}"
