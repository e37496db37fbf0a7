"""Generated excerpts of the source: places, definitions, and breakpoints for a debugger."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

from byhand.book.finding import source
from byhand.book.finding.flow import concepts
from byhand.book.finding.index import all_findings
from byhand.book.finding.others import places as known_places
from byhand.book.pages.blocks.markdown import ROOT, block, link, link_equation, table
from byhand.book.pages.data import read
from byhand.book.words.language import SEMICOLON, Words
from byhand.engine.equation import registry
from byhand.errors import ByhandError

DEFINITIONS = {place: Words(*said) for place, said in read("definitions").items()}


@block
def code(page: Path, lang: str, *definitions: str) -> str:
    """Places in code, in the order given; each is written `engine/backward.py:walk_back`."""
    rows = []
    for number, given in enumerate(definitions, 1):
        path, name = located(given)
        called = name if path.parent.name != "equations" else f"{path.stem}.{name}"
        rows.append((number, f"`{called}`", _what(page, given, lang), link_definition(page, given)))
    return table(Words("|Name|What|Where", "|名称|内容|位置"), rows, lang)


def _what(page: Path, given: str, lang: str) -> str:
    """Return the title of a definition: that of an equation with its page, of a place, or of `DEFINITIONS`."""
    path, name = located(given)
    if path.stem in registry and path.parent.name == "equations":
        half = {"vjp": Words(": derivative", "：导数"), "terms": Words(": one element", "：单个元素")}.get(name)
        return link_equation(page, path.stem, lang) + (half.said(lang) if half else "")
    known = next((place.title for place in known_places() if place.code == (path, name)), None)
    return (known or DEFINITIONS[given]).said(lang)


@block
def places(page: Path, lang: str) -> str:
    """The code around the equations, which wires, records, trains and stores, with the original program's names."""
    rows = []
    for place in known_places():
        seeds = ", ".join(f"`{name}`" for name in place.seed_names) or "—"
        rows.append((f"{place.title.said(lang)} <br> {link(page, place.forward)}", seeds))
    return table(Words("What, and where|In the original program", "内容及其位置|在原 C++ 程序中"), rows, lang)


@block
def glossary(page: Path, lang: str) -> str:
    """Every term with its translation, its other names, and the page or the code that it leads to."""
    rows = []
    for concept in concepts():
        first = concept.entries[0]
        where = link_equation(page, first, lang) if first in registry else link(page, all_findings()[first].forward)
        others = SEMICOLON.said(lang).join(concept.also)
        other = Words(concept.zh, concept.en)  # the word of the other language
        rows.append((concept, other, others.replace("|", "\\|"), where))
    return table(Words("English|Chinese|Also|Where", "中文|英文|又称|位置"), rows, lang)


@block
def design(page: Path, lang: str) -> str:
    """Links to the pages about the project itself, by their headings; they are written in English only."""
    folder = page.parent
    own = [path for path in sorted(folder.glob("*.md")) if not path.name.startswith("index.")]
    found = [*own, *sorted((folder / "decisions").glob("*.md"))]
    lines = []
    for path in found:
        heading = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{heading}]({path.relative_to(folder).as_posix()})")
    return "\n".join(lines)


@block
def breakpoints(page: Path, lang: str, *definitions: str) -> str:
    """Commands for Python's debugger: go on to the first definition, then stop in each other one.

    A stop is at the first line that runs once.
    """
    places = []
    for path, name in map(located, definitions):
        first = next(statement for statement in source.statement(path, name).body if _runs_once(statement))
        places.append(f"{source.shown(path)}:{first.lineno}")
    lines = [f"tbreak {places[0]}", "continue", *(f"break {place}" for place in places[1:])]
    return "\n".join(["```text", *lines, "```"])


def _runs_once(statement: ast.stmt) -> bool:
    """Say whether a debugger stops at the statement, and once only: it is no docstring, and nothing in it repeats."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return False
    repeats = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return not any(isinstance(node, repeats) for node in ast.walk(statement))


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
