"""Answers about the code: what a definition is called, its source, the glossary."""

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent

from byhand.book.finding import source
from byhand.book.finding.flow import concepts
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.equation import registry
from pages.blocks.markdown import ROOT, located
from pages.data import read
from pages.path import STOPS as stops
from pictures import PICTURES as pictures
from where import syntax
from where.index import all_findings
from where.others import places as known_places

papers, docs = read("references"), ROOT / "docs"
TITLES = {place: Words(*said) for place, said in read("definitions").items()}


@dataclass(frozen=True)
class TitledCode:
    """A definition: its name as a page says it, and its title; or the equation that it is a half of."""

    name: str
    title: Words
    stem: str = ""
    half: str = ""


def definition_of(given: str) -> TitledCode:
    """Return a definition that is written `engine/backward.py:walk_back`."""
    path, name = located(given)
    if path.stem in registry and path.parent.name == "equations":
        return TitledCode(f"{path.stem}.{name}", Words("", ""), path.stem, name)
    known = next((place.title for place in known_places() if place.code == (source.inside(path), name)), None)
    return TitledCode(name, known or TITLES[given])


def source_of(given: str) -> str:
    """Return the source of a definition."""
    path, name = located(given)
    node = syntax.statement(path, name)
    return dedent("\n".join(path.read_text(encoding="utf-8").splitlines()[node.lineno - 1 : node.end_lineno]))


def terms() -> Iterator[tuple[Concept, Words, Words, str, str | None]]:
    """Yield the glossary: a term, what it means, its word in the other language, its equation or else its place."""
    meanings = read("meanings")
    for concept in concepts():
        first, other, said = (
            concept.entries[0],
            Words(concept.zh, concept.en),
            Words(*meanings.get(concept.en, ("", ""))),
        )
        is_equation = first in registry
        place = None if is_equation else all_findings()[first].forward
        yield concept, said, other, first if is_equation else "", place
