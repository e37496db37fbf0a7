"""Generated pictures: an image that is drawn by code, with its words."""

from __future__ import annotations

from pathlib import Path

from byhand.book.pages.blocks.markdown import ROOT, block, relative
from byhand.book.pictures import PICTURES


@block
def picture(page: Path, lang: str, name: str) -> str:
    """A picture by its name, with its description."""
    drawn = PICTURES[name]
    return f"![{drawn.alt(lang)}]({relative(page, drawn.path(ROOT / 'docs', lang))})"
