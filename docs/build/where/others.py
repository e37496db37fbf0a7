"""Answers besides equations, from the tables in `data/`: places, settings, commands, guides, lessons, terms, and
what the model lacks. Titles are read from where they stand: glossary, help, pages, lessons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding import source
from byhand.book.finding.finding import NOTHING, Finding
from byhand.book.finding.flow import concepts
from byhand.book.lessons.examples import TITLES
from byhand.book.words.glossary import GLOSSARY
from byhand.book.words.language import PAGE, Words
from byhand.book.words.tables import Table, table
from where import commands

DATA = Path(__file__).with_name("data")
GUIDES = "docs/guides"


def data(name: str) -> dict[str, Any]:
    """Return a table of `data/`."""
    return table(DATA / f"{name}.toml")


@cache
def places() -> tuple[Finding, ...]:
    """Return the code that wires, records, trains and stores."""
    terms = Table(GLOSSARY, {concept.en: concept for concept in concepts()})
    return tuple(_place(name, row, terms) for name, row in data("places").items())


def _place(name: str, row: dict[str, Any], terms: dict[str, Any]) -> Finding:
    file, _, definition = row["code"].partition(":")
    path = Path(file)
    term = terms[row["term"]] if "term" in row else NOTHING
    return Finding(
        name=name,
        title=Words(*row["title"]),
        term=Words(term.en, term.zh),
        kind="place",
        code=(file, definition),
        tests=(f"tests/test_{path.stem}.py", f"tests/{path.parent}/test_{path.name}"),
        see=tuple(row.get("see", ())),
        seed_names=tuple(split(row.get("seed", ""))),
    )


def others(known: Iterable[Finding]) -> Iterator[Finding]:
    """Yield all answers that are neither equations nor places, given those."""
    titles = {words.en.casefold() for finding in known for words in (finding.title, finding.term)}
    yield from commands.settings(data("settings"))
    yield from commands.commands(data("commands"))
    yield from _guides()
    yield from _lessons()
    yield from (
        Finding(f"glossary/{concept.en}", Words(concept.en, concept.zh), "term", see=concept.entries)
        for concept in concepts()
        if concept.en.casefold() not in titles
    )
    yield from absent()


def asked(known: Iterable[Finding]) -> dict[str, list[str]]:
    """Return names in other programs, and questions, by the answer that they lead to.

    known  equations and places: a name of theirs is no name of what lacks
    """
    rows = [(entry.stem, entry.asked) for entry in ENTRIES.values()]
    rows += [(name, row["asked"]) for name, row in data("places").items()]
    found = {name: split(text) for name, text in rows}
    names = {name for finding in known for name in (finding.name, finding.title.en, finding.term.en)}
    taken = {name.casefold() for name in names.union(*found.values())}
    rows = [(f"--{name.replace('_', '-')}", row.get("asked", "")) for name, row in data("settings").items()]
    rows += [(f"byhand {name}", row["asked"]) for name, row in data("commands").items()]
    found |= {name: split(text) for name, text in rows}
    found |= {f"glossary/{concept.en}": [*concept.also] for concept in concepts()}
    for name, row in data("absent").items():
        found[name] = [other for other in split(row["asked"]) if other.casefold() not in taken]
    for name, row in data("questions").items():
        found[name] = [*found.get(name, ()), *split(row["asked"])]
    return found


def split(asked: str) -> list[str]:
    """Return names and questions that commas separate, but for those in brackets; a new line stands for a blank."""
    found: list[str] = []
    for part in asked.strip().replace("\n", " ").split(", ") if asked else ():
        inside = found and sum(map(found[-1].count, "([")) > sum(map(found[-1].count, ")]"))
        found[-1:] = [f"{found[-1]}, {part}"] if inside else [*found[-1:], part]
    return found


def _guides() -> Iterator[Finding]:
    """Yield the guides under the first headings of their pages."""
    for path in sorted(((source.repository() or Path()) / GUIDES).glob(f"*{PAGE.zh}")):
        stem = path.name.removesuffix(PAGE.zh)
        title = Words(*(_heading(path.with_name(stem + ending)) for ending in (PAGE.en, PAGE.zh)))
        yield Finding(f"guides/{stem}", title, "guide", pages=GUIDES)


def _heading(path: Path) -> str:
    """Return the first heading of a page."""
    with path.open(encoding="utf-8") as page:
        return next((line[2:].strip() for line in page if line.startswith("# ")), path.stem)


def _lessons() -> Iterator[Finding]:
    """Yield the worked examples."""
    for name, title in TITLES.items():
        yield Finding(
            name=f"work {name}",
            title=title,
            kind="lesson",
            code=(f"book/lessons/examples/{name.replace('-', '_')}.py", "lesson"),
            command=f"byhand work {name}",
            see=_pages_of(name),
        )


def _pages_of(lesson: str) -> tuple[str, ...]:
    """Return the guides that show steps of a lesson."""
    pages = sorted(((source.repository() or Path()) / GUIDES).glob(f"*{PAGE.zh}"))
    return tuple(
        f"guides/{page.name.removesuffix(PAGE.zh)}"
        for page in pages
        if f"<!-- generated: lesson {lesson} " in page.read_text(encoding="utf-8")
    )


@cache
def absent() -> tuple[Finding, ...]:
    """Return techniques of other models that this one lacks, and what it does instead."""
    return tuple(
        Finding(
            name=name,
            title=Words(*row["title"]),
            kind="absent",
            says=(Words(*row["what"]), Words(*row["instead"])),
            see=tuple(row["see"]),
        )
        for name, row in data("absent").items()
    )
