"""What a picture says: the words in it, and its numbers."""

import re
from xml.etree import ElementTree

from byhand.book.pictures import PICTURES

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"(?<![\w.])−?\d+(?:\.\d+)?(?:e[−-]\d+)?(?![\w.])")


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
