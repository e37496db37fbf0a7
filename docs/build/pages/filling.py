"""Fills the generated blocks of the pages in docs/ from the code that they describe.

    <!-- generated: worked layer_norm -->
    ... replaced by the block (`blocks/`) or part (`parts/`) `worked` for `layer_norm`, in the page's language ...
    <!-- end -->

What one page alone has is a template: its words in the page's own language, its numbers expressions (`templates.py`).

    <!-- generated:
    | Text | Bytes |
    | --- | --- |
    {% for text in ("to be", "naïve") %}
    | `{{ text }}` | {{ bytes_of(text)|length }} |
    {% endfor %}
    -->
    ... replaced by what the template says ...
    <!-- end -->

A number inside a sentence is an expression: a lesson, an element of one of its arrays, and with how many digits.

    attends with <!-- = paper-gpt attn.weights[2,1] 3 -->0.695<!-- . --> of its weight

`python docs/build` writes every stale page; with `--check` it only names them and exits with 1. Prose
outside the marks is written by hand, once in each language (`page.md`, `page.zh-CN.md`).
"""

import re
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path

from breaking import text as curves_text
from byhand.book.finding.search import INDEX
from byhand.book.finding.source import repository
from byhand.book.port.naming import TABLE
from byhand.book.practice.effects import CURVES
from byhand.book.words.language import PAGE
from byhand.errors import ByhandError
from pages.blocks.arrays import value
from pages.templates import KINDS, read, rendered
from pictures import PICTURES
from port import text as table_text
from where import index

COMMAND = "python docs/build"
MARK = re.compile(r"(<!-- generated:(?: (?P<block>[^\n]+?) |\n(?P<template>.*?)\n)-->\n).*?(<!-- end -->)", re.DOTALL)
END = "<!-- end -->"
ENDS = re.compile(r"^<!-- generated:|^<!-- end -->", re.MULTILINE)
SHORT = "<!-- generated: template -->\n"
INSIDE = re.compile(r"(<!-- = (?P<asked>[^\n]+?) -->)[^\n]*?(<!-- \. -->)")


def docs() -> Path:
    """Return the folder of the pages; ByhandError if byhand is installed without them."""
    root = repository()
    if root is None or not (root / "docs").is_dir():
        raise ByhandError("this installation has no docs folder. Run this from a checkout.")
    return root / "docs"


def pages() -> list[Path]:
    """Return every page that has generated blocks, sorted."""
    root = docs().parent
    found = [*root.glob("README*.md"), *docs().rglob("*.md")]
    return sorted(page for page in found if "<!-- generated:" in read(page))


def language(page: Path) -> str:
    """Return `zh` for a page called *.zh-CN.md, else `en`."""
    return "zh" if page.name.endswith(PAGE.zh) else "en"


def as_read(text: str) -> str:
    """Return a page's text without its templates, as readers see it; a short mark is left of each."""
    return MARK.sub(lambda mark: mark[0] if mark["block"] else f"{SHORT}{mark[0].removeprefix(mark[1])}", text)


def filled(page: Path) -> str:
    """Return the page's text with every block and number regenerated; ByhandError for an unknown one."""
    text = read(page)
    _require_pairs(page, text)

    def fill(mark: re.Match[str]) -> str:
        at = (page.name, _line(text, mark.start()))
        if mark["template"] is not None:
            said = rendered(mark["template"], page, at, language(page))
        else:
            said = _block(page, at, *mark["block"].split())
        return f"{mark[1]}\n{said}\n\n{mark[4]}"

    def said(mark: re.Match[str]) -> str:
        return f"{mark[1]}{value(*mark['asked'].split())}{mark[3]}"

    return INSIDE.sub(said, MARK.sub(fill, text))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _require_pairs(page: Path, text: str) -> None:
    """Raise ByhandError for a mark without its end, which would swallow what follows, or an end without its mark."""
    is_open = False
    for mark in ENDS.finditer(text):
        if is_open == (mark[0] != END):
            what = "`<!-- end -->` before it is missing" if is_open else "it ends nothing"
            raise ByhandError(f"{page.name}:{_line(text, mark.start())}: {what}. Correct the marks.")
        is_open = not is_open
    if is_open:
        raise ByhandError(f"{page.name}: `{END}` is missing behind the last mark. Add it.")


def _block(page: Path, at: tuple[str, int], kind: str, *words: str) -> str:
    if kind not in KINDS:
        raise ByhandError(f"{page.name} asks for a block {kind!r}. Use one of {', '.join(sorted(KINDS))}.")
    try:
        return KINDS[kind](page, language(page), *words)
    except (ByhandError, TypeError) as error:  # TypeError: too many words, or too few
        raise ByhandError(f"{at[0]}:{at[1]}: {error}") from None


def stale(compute: bool = False) -> Iterator[tuple[Path, str]]:
    """Yield each stale page or picture, the index of `where`, the tables of `port` and `break`, with its fresh text.

    Only with `compute` a stale table is computed, in minutes; else its text is empty.
    """
    known = table_text(compute)
    tables = [(TABLE, known), (CURVES, curves_text(known, compute))]
    drawn = {picture.path(docs(), lang): picture.svg(lang) for picture in PICTURES.values() for lang in ("en", "zh")}
    written = [*tables, *((page, filled(page)) for page in pages()), *drawn.items()]
    for path, text in [*written, (INDEX, index.text())]:
        if not path.is_file() or text.encode() != path.read_bytes():
            yield path, text


def main(arguments: list[str]) -> int:
    """Write stale pages, or with --check only name them; return 1 if --check found one."""
    check = "--check" in arguments
    found = list(stale(not check))
    for page, text in found:
        if not check:
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, encoding="utf-8", newline="\n")
        print(f"{'stale' if check else 'written'}: {relpath(page, docs().parent)}")
    if check and found:
        print(f"Run {COMMAND}.")
    return 1 if check and found else 0
