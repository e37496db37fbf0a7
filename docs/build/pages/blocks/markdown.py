"""Markdown as generated blocks need it: tables, formulas, and links to code and to pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from os.path import relpath
from pathlib import Path

from byhand.book.finding import source
from byhand.book.words.language import PAGE, Words
from byhand.errors import ByhandError
from where import index, syntax

Rows = Iterable[Iterable[object]]
ROOT = source.repository() or Path()
QUAD = r", \quad "  # between formulas that stand on one line
ONE_LINE = 70  # LaTeX longer than this is broken at its \quad


def table(head: Words, rows: Rows, lang: str) -> str:
    """Return a Markdown table in `en` or `zh`; a | divides the columns of the head."""
    columns = head.said(lang).split("|")
    lines = [columns, ["---"] * len(columns), *rows]
    said = ((x.said(lang) if isinstance(x, Words) else str(x) for x in line) for line in lines)
    return with_minus("\n".join(f"| {' | '.join(line)} |" for line in said))


def with_minus(text: str) -> str:
    """Return text whose tables have real minus signs; code and formulas in them stay."""

    def said(cell: str) -> str:
        return cell if "`" in cell else re.sub(r"(?<![\w)\]-])-(?=\d)(?!\d+e)", "−", cell)

    return re.sub(r"^\|.*", lambda row: " | ".join(map(said, row[0].split(" | "))), text, flags=re.MULTILINE)


def display(latex: str) -> str:
    """Return a displayed formula in the form that GitHub renders without touching a backslash or underscore."""
    return display_lines(latex.split(QUAD) if len(latex) > ONE_LINE else [latex])


def display_lines(lines: Sequence[str]) -> str:
    """Return formulas one below the other."""
    if len(lines) == 1:
        return f"```math\n{lines[0]}\n```"
    body = " \\\\[4pt]\n".join(f"& {line}" for line in lines)
    return f"```math\n\\begin{{aligned}}\n{body}\n\\end{{aligned}}\n```"


def bmatrix(rows: Iterable[Iterable[str]]) -> str:
    """Return numbers, as they are written, as a matrix in LaTeX."""
    return r"\begin{bmatrix}" + r" \\ ".join(" & ".join(row) for row in rows) + r"\end{bmatrix}"


def inline(latex: str) -> str:
    """Return a formula inside a line, in the form that GitHub renders without touching it."""
    return f"$`{latex}`$"


def link(page: Path, place: str | None, shown: str = "", is_short: bool = False) -> str:
    """Return the definition at `path:line` as a link from a page; "" for None.

    It shows the definition's path and name, or the name alone, or the given text. The link names the definition instead of the line, so a page changes only with what it points at. The site leads
    to the line.
    """
    if place is None:
        return ""
    path, _, line = place.rpartition(":")
    name = syntax.enclosing(ROOT / path, int(line))
    shown = shown or (name if is_short else f"{path}{name and ':'}{name}")
    return f"[{shown}]({relative(page, ROOT / path)}{name and '#'}{name})"


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
        raise ByhandError(f"{file} has no {name}. Correct what names it in docs/build/pages or in docs.")
    return path, name


def link_equation(page: Path, stem: str, lang: str) -> str:
    """Return an equation's title as a link from a page to the equation's own."""
    finding = index.findings()[stem]
    return f"[{finding.title.said(lang)}]({relative(page, ROOT / finding.page_path(lang))})"


def link_titled(page: Path, target: Path) -> str:
    """Return a page's heading as a link to it from another."""
    heading = re.search(r"^# (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return f"[{heading[1] if heading else target.stem}]({relative(page, target)})"


def in_language(stem: str, lang: str) -> Path:
    """Return the file of a page in `en` or `zh` by its path without suffix; in English if it has but one language."""
    own = ROOT / f"{stem}{PAGE.said(lang)}"
    return own if own.is_file() else ROOT / f"{stem}{PAGE.en}"


def relative(page: Path, target: Path) -> str:
    """Return the path from a page to a file, as links have it."""
    return relpath(target, page.parent).replace("\\", "/")
