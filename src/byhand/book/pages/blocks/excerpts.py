"""Generated excerpts of the source: definitions, and links to them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from byhand.book.finding import source
from byhand.book.pages.blocks.markdown import ROOT, block, link
from byhand.errors import ByhandError


@block
def snippet(page: Path, lang: str, given: str) -> str:
    """The source of one definition, with its place."""
    path, name = located(given)
    node = source.statement(path, name)
    lines = path.read_text(encoding="utf-8").splitlines()[node.lineno - 1 : node.end_lineno]
    text = dedent("\n".join(lines))
    return f"{link_definition(page, given)}\n\n```python\n{text}\n```"


def link_definition(page: Path, given: str) -> str:
    """Return `path:line` of a definition as a link from a page; ByhandError if it is not there any more."""
    return link(page, source.definition(*located(given)))


def located(given: str) -> tuple[Path, str]:
    """Return the file and the name in `engine/backward.py:walk_back`; ByhandError if they are not there any more.

    The file is one of the package, or of the repository's `examples/` or `tests/`.
    """
    file, _, name = given.partition(":")
    path = (ROOT if file.startswith(("examples/", "tests/")) else source.PACKAGE) / file
    if source.definition(path, name) is None:
        raise ByhandError(f"{file} has no {name}. Correct what names it in src/byhand/book/pages or in docs.")
    return path, name
