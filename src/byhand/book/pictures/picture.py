"""A picture of the pages: what it shows, declared as a scene, with its subject as its title."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from byhand.book.pictures.canvas import Canvas
from byhand.book.pictures.scene.data import as_json
from byhand.book.pictures.scene.drawing import draw
from byhand.book.pictures.scene.elements import Figure
from byhand.book.pictures.scene.words import alternative
from byhand.book.words.language import PAGE, Words


@dataclass(frozen=True)
class Picture:
    """A picture by its name, with its subject, which begins its description too."""

    name: str
    title: Words
    scene: Callable[[], Figure]

    def drawn(self, lang: str) -> Canvas:
        """Draw it in `en` or `zh`."""
        canvas = Canvas(lang)
        draw(canvas, self.scene())
        return canvas

    def svg(self, lang: str) -> str:
        """Return it as SVG."""
        return self.drawn(lang).svg(self.title)

    def alt(self, lang: str) -> str:
        """Describe it, numbers included."""
        return alternative(self.title, self.scene(), lang)

    def as_json(self) -> dict[str, Any]:
        """Return what it shows as plain values, in both languages."""
        return {"name": self.name, "title": as_json(self.title), "scene": as_json(self.scene())}

    def path(self, docs: Path, lang: str) -> Path:
        """Return its file below the folder of the pages."""
        return docs / "images" / f"{self.name}{PAGE.said(lang).removesuffix('.md')}.svg"


Declare = Callable[[], Figure]
PICTURES: dict[str, Picture] = {}


def scene(en: str, zh: str) -> Callable[[Declare], Declare]:
    """Register a function that declares a picture of this subject, by its name: `six_nodes` is six-nodes.svg."""

    def register(declare: Declare) -> Declare:
        name, declared = declare.__name__.replace("_", "-"), cache(declare)
        PICTURES[name] = Picture(name, Words(en, zh), declared)
        return declared

    return register
