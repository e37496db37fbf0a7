"""The papers that pages refer to: one list, of which a page names those it needs."""

from __future__ import annotations

from pathlib import Path

from byhand.book.pages.blocks.markdown import block
from byhand.book.pages.data import read

PAPERS = read("references")


@block
def references(page: Path, lang: str, *names: str) -> str:
    """Papers by name, each with its authors, year, title and address."""
    return "\n".join(f"- {authors}: [{title}]({url})" for authors, title, url in (PAPERS[name] for name in names))
