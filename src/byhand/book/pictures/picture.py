"""A picture: declared as a scene, drawn as SVG and described in words, with its subject as its title."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from byhand.book.pictures.canvas import WIDTH, Canvas
from byhand.book.pictures.scene.figure import Figure, Placed
from byhand.book.words.language import PAGE, SEMICOLON, Words

STOP = Words(".", "。")
Declare = Callable[[], Figure]


@dataclass(frozen=True)
class Picture:
    """A picture: its name and its subject, which also begins its description."""

    name: str
    title: Words
    scene: Declare

    def svg(self, lang: str) -> str:
        """Return it as SVG, in `en` or `zh`."""
        return drawn(self.scene(), lang).svg(self.title)

    def alt(self, lang: str) -> str:
        """Describe it, numbers included: its subject, then what it shows, up to a full stop."""
        stop, space = STOP.said(lang), " " * (lang == "en")
        said = self.title.said(lang) + stop + space
        for i, part in enumerate(self.scene().parts(lang)):
            before = stop + space if part.endswith(stop) else SEMICOLON.said(lang)  # a sentence of its own, or not
            said += (before if i else "") + part.rstrip(stop)
        return said.rstrip().removesuffix(stop) + stop

    def path(self, docs: Path, lang: str) -> Path:
        """Return its file below the folder of the pages."""
        return docs / "images" / f"{self.name}{PAGE.said(lang).removesuffix('.md')}.svg"


def placed(scene: Figure, lang: str) -> tuple[list[Placed], float]:
    """Return all elements of a scene in their places, and the height of the whole."""
    found: list[Placed] = []
    high = scene.put(4, 2, WIDTH - 8, lang, found)
    return found, high + 6


def drawn(scene: Figure, lang: str) -> Canvas:
    """Draw a scene."""
    canvas = Canvas(lang)
    found, canvas.y = placed(scene, lang)
    for p in found:
        p.element.draw(canvas, p)
    return canvas


def scene(en: str, zh: str) -> Callable[[Declare], Picture]:
    """Make a picture of this subject from a function that declares its scene: `six_nodes` is six-nodes.svg."""
    return lambda declare: Picture(declare.__name__.replace("_", "-"), Words(en, zh), cache(declare))
