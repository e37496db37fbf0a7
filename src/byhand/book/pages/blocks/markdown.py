"""Markdown as generated blocks need it: the registry of blocks, tables, formulas, and links to code and to pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from os.path import relpath
from pathlib import Path

from byhand.book.finding import index, source
from byhand.book.words.language import Words

Block = Callable[..., str]
Rows = Iterable[Iterable[object]]
BLOCKS: dict[str, Block] = {}
ROOT = source.repository() or Path()
QUAD = r", \quad "  # between formulas that stand on one line
ONE_LINE = 70  # LaTeX longer than this is broken at its \quad


def block(function: Block) -> Block:
    """Register a function as a kind of block, by its name; ValueError if the name is taken."""
    if function.__name__ in BLOCKS:
        raise ValueError(f"two blocks are called {function.__name__}")
    BLOCKS[function.__name__] = function
    return function


def table_block(en: str, zh: str) -> Callable[[Callable[..., Rows]], Block]:
    """Register a function that yields rows as a kind of block: a table with this head; a | divides its columns."""

    def register(rows: Callable[..., Rows]) -> Block:
        @wraps(rows)
        def whole(page: Path, lang: str, *arguments: str) -> str:
            return table(Words(en, zh), rows(*arguments), lang)

        return block(whole)

    return register


def table(head: Words, rows: Rows, lang: str) -> str:
    """Return a Markdown table in `en` or `zh`; a | divides the columns of the head."""
    columns = head.said(lang).split("|")
    lines = [columns, ["---"] * len(columns), *rows]
    said = ((x.said(lang) if isinstance(x, Words) else str(x) for x in line) for line in lines)
    return "\n".join(f"| {' | '.join(map(_with_minus, line))} |" for line in said)


def _with_minus(cell: str) -> str:
    """Return a cell with real minus signs; code and formulas stay."""
    return cell if "`" in cell else re.sub(r"(?<![\w)\]-])-(?=\d)(?!\d+e)", "−", cell)


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


def link(page: Path, place: str | None) -> str:
    """Return the definition at `path:line` as a link from a page; nothing for a place that does not exist.

    The link names the definition instead of the line, so a page changes only with what it points at. The site leads
    to the line.
    """
    if place is None:
        return ""
    path, _, line = place.rpartition(":")
    name = source.enclosing(ROOT / path, int(line))
    return f"[{path}{name and ':'}{name}]({relative(page, ROOT / path)}{name and '#'}{name})"


def link_equation(page: Path, stem: str, lang: str) -> str:
    """Return an equation's title as a link from a page to the equation's own."""
    finding = index.findings()[stem]
    return f"[{finding.title.said(lang)}]({relative(page, ROOT / finding.page_path(lang))})"


def relative(page: Path, target: Path) -> str:
    """Return the path from a page to a file, as links have it."""
    return relpath(target, page.parent).replace("\\", "/")


def vector(numbers: Iterable[float]) -> str:
    """Return numbers as a vector in a line of text: (3, 4)."""
    return f"({', '.join(f'{x:g}' for x in numbers)})"


def decimals(value: float) -> str:
    """Return a number with six decimals, the precision of every worked number; never a negative zero."""
    return f"{round(value, 6) + 0.0:.6f}"
