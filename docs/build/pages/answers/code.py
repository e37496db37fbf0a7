"""Answers about the code: what a definition is called, where it begins, and the pages about the project itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent

from byhand.book.finding import source
from byhand.book.finding.flow import concepts
from byhand.book.pictures import PICTURES
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.equation import registry
from pages.answers.registry import ANSWERS, answer
from pages.blocks.markdown import ROOT, located
from pages.data import read
from pages.path import STOPS
from where.index import all_findings
from where.others import places

ANSWERS |= {
    "stops": STOPS,
    "papers": read("references"),
    "known_places": places,
    "pictures": PICTURES,
    "docs": ROOT / "docs",
}
TITLES = {place: Words(*said) for place, said in read("definitions").items()}


@dataclass(frozen=True)
class TitledCode:
    """A definition: its name as a page says it, and its title; or the equation that it is a half of."""

    name: str
    title: Words
    stem: str = ""
    half: str = ""


@answer
def definition_of(given: str) -> TitledCode:
    """Return a definition that is written `engine/backward.py:walk_back`."""
    path, name = located(given)
    if path.stem in registry and path.parent.name == "equations":
        return TitledCode(f"{path.stem}.{name}", Words("", ""), path.stem, name)
    known = next((place.title for place in places() if place.code == (path, name)), None)
    return TitledCode(name, known or TITLES[given])


@answer
def source_of(given: str) -> str:
    """Return the source of a definition."""
    path, name = located(given)
    node = source.statement(path, name)
    return dedent("\n".join(path.read_text(encoding="utf-8").splitlines()[node.lineno - 1 : node.end_lineno]))


@answer
def terms() -> Iterator[tuple[Concept, Words, str, str | None]]:
    """Yield the glossary: a term, its word in the other language, and the equation or the place that it leads to."""
    for concept in concepts():
        first, other = concept.entries[0], Words(concept.zh, concept.en)
        yield (
            (concept, other, first, None)
            if first in registry
            else (concept, other, "", all_findings()[first].forward)
        )


@answer
def pages_in_english() -> list[str]:
    """Return the pages about the project itself, which have no other language, without suffix."""
    found = [path for folder in ("docs", "docs/decisions") for path in sorted((ROOT / folder).glob("*.md"))]
    return [path.relative_to(ROOT).with_suffix("").as_posix() for path in found if not path.name.startswith("index.")]


@answer
def first_lines(definitions: tuple[str, ...]) -> list[str]:
    """Return `path:line` of the first line of each definition that runs once, for a debugger to stop at."""
    found = []
    for path, name in map(located, definitions):
        first = next(statement for statement in source.statement(path, name).body if _runs_once(statement))
        found.append(f"{source.shown(path)}:{first.lineno}")
    return found


def _runs_once(statement: ast.stmt) -> bool:
    """Say whether a debugger stops at the statement, and once only: it is no docstring, and nothing in it repeats."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return False
    repeats = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return not any(isinstance(node, repeats) for node in ast.walk(statement))
