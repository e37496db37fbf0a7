"""Generated pictures: an image that is drawn by code, with its words."""

from __future__ import annotations

from os.path import relpath
from pathlib import Path

from byhand.book.finding.source import repository
from byhand.book.pages.blocks.markdown import block
from byhand.book.pictures import PICTURES


@block
def picture(page: Path, lang: str, name: str) -> str:
    """A picture by its name, and in words what it shows."""
    drawn = PICTURES[name]
    docs = (repository() or Path()) / "docs"
    return f"![{drawn.alt(lang)}]({relpath(drawn.path(docs, lang), page.parent)})".replace("\\", "/")
