"""A picture of the pages: a function that draws it, its title, and its description."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import Canvas
from byhand.book.words.language import COLON, COMMA, PAGE, SEMICOLON, Said, Words, say

Draw = Callable[[Canvas], None]


@dataclass(frozen=True)
class Picture:
    """A picture by its name: `alt` describes it, numbers included."""

    name: str
    title: Words
    alt: Callable[[str], str]
    draw: Draw

    def svg(self, lang: str) -> str:
        """Draw it in `en` or `zh`."""
        canvas = Canvas(lang)
        self.draw(canvas)
        return canvas.svg(self.title)

    def path(self, docs: Path, lang: str) -> Path:
        """Return its file below the folder of the pages."""
        return docs / "images" / f"{self.name}{PAGE.said(lang).removesuffix('.md')}.svg"


PICTURES: dict[str, Picture] = {}


def picture(title: Words, alt: Words | Callable[[str], str]) -> Callable[[Draw], Draw]:
    """Register a function as a picture, by its name: `who_holds_what` draws who-holds-what.svg."""

    def register(draw: Draw) -> Draw:
        name = draw.__name__.replace("_", "-")
        PICTURES[name] = Picture(name, title, alt.said if isinstance(alt, Words) else alt, draw)
        return draw

    return register


def sentence(lang: str, start: Words, parts: Iterable[str]) -> str:
    """Return the subject of a picture, then its parts, up to a full stop."""
    return start.said(lang) + SEMICOLON.said(lang).join(parts) + Words(".", "。").said(lang)


def row(lang: str, name: Said, values: Iterable[float], digits: int = 3) -> str:
    """Return a name and its numbers; a colon within the name becomes a comma."""
    said = say(name, lang).replace("：", "，").replace(": ", ", ")
    return said + COLON.said(lang) + COMMA.said(lang).join(decimal(float(x), digits) for x in values)
