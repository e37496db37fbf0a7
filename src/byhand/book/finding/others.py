"""Answers besides equations, from the tables in `data/`: places, settings, commands, guides, lessons, terms, and
what the model lacks. Titles are read from where they stand: glossary, help, pages, lessons."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from byhand.book.finding import commands, source
from byhand.book.finding.finding import NOTHING, Finding, split
from byhand.book.finding.flow import concepts
from byhand.book.words.glossary import GLOSSARY
from byhand.book.words.language import PAGE, Words
from byhand.book.words.tables import PAIR, Table, table

DATA = Path(__file__).with_name("data")
LESSONS = source.PACKAGE / "book/lessons/examples"
GUIDES = "docs/guides"
ASKED = {"asked": str}
ROWS = {
    "absent": ASKED | {"title": PAIR, "what": PAIR, "instead": PAIR, "see": [str]},
    "places": ASKED | {"title": PAIR, "term": str, "code": str, "see": [str], "seed": str, "formulas": [str]},
    "commands": ASKED | {"zh": str},
    "settings": ASKED | {"zh": str},
    "questions": ASKED,
    "formulas": [str],
    "libraries": str,
    "regional": str,
    "synonyms": str,
}


def data(name: str) -> dict[str, Any]:
    """Return a table of `data/`."""
    return table(DATA / f"{name}.toml", ROWS[name])


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
        asked=split(row["asked"]),
        code=(source.PACKAGE / file, definition),
        tests=(f"tests/test_{path.stem}.py", f"tests/{path.parent}/test_{path.name}"),
        see=tuple(row.get("see", ())),
        seed_names=split(row.get("seed", "")),
        notations=tuple(row.get("formulas", ())),
    )


def others(known: Iterable[Finding]) -> Iterator[Finding]:
    """Yield all answers that are neither equations nor places, given those."""
    known, questions = tuple(known), data("questions")
    titles = {words.en.casefold() for finding in known for words in (finding.title, finding.term)}
    taken = titles | {name.casefold() for finding in known for name in (finding.name, *finding.asked)}
    yield from commands.settings(data("settings"))
    yield from commands.commands(data("commands"))
    yield from _guides(questions)
    yield from _lessons(questions)
    yield from _terms(questions, titles)
    for finding in absent():
        there = tuple(name for name in finding.asked if name.casefold() not in taken)
        yield Finding(**{**vars(finding), "asked": there})


def _guides(questions: dict[str, Any]) -> Iterator[Finding]:
    """Yield the guides under the first headings of their pages."""
    for path in sorted(((source.repository() or Path()) / GUIDES).glob(f"*{PAGE.zh}")):
        stem = path.name.removesuffix(PAGE.zh)
        title = Words(*(_heading(path.with_name(stem + ending)) for ending in (PAGE.en, PAGE.zh)))
        yield Finding(f"guides/{stem}", title, "guide", asked=_asked(questions, f"guides/{stem}"), pages=GUIDES)


def _heading(path: Path) -> str:
    """Return the first heading of a page."""
    with path.open(encoding="utf-8") as page:
        return next((line[2:].strip() for line in page if line.startswith("# ")), path.stem)


def _lessons(questions: dict[str, Any]) -> Iterator[Finding]:
    """Yield the worked examples; their titles are parsed, since importing them would import NumPy."""
    listed = [
        (*map(ast.literal_eval, call.args), path)
        for path in LESSONS.glob("*.py")
        for call in getattr(source.statement(path, "lesson"), "decorator_list", ())
    ]
    for _, en, zh, _, path in sorted(listed):
        name = f"work {path.stem.replace('_', '-')}"
        asked = _asked(questions, name)
        yield Finding(name, Words(en, zh), "lesson", (path, "lesson"), asked=asked, command=f"byhand {name}")


def _terms(questions: dict[str, Any], titles: set[str]) -> Iterator[Finding]:
    """Yield the glossary's topics that are not the title of another answer."""
    for concept in concepts():
        if concept.en.casefold() not in titles:
            name = f"glossary/{concept.en}"
            asked = (*concept.also, *_asked(questions, name))
            yield Finding(name, Words(concept.en, concept.zh), "term", asked=asked, see=concept.entries)


@cache
def absent() -> tuple[Finding, ...]:
    """Return techniques of other models that this one lacks, and what it does instead."""
    return tuple(
        Finding(
            name=name,
            title=Words(*row["title"]),
            kind="absent",
            asked=split(row["asked"]),
            says=(Words(*row["what"]), Words(*row["instead"])),
            see=tuple(row["see"]),
        )
        for name, row in data("absent").items()
    )


def _asked(questions: dict[str, Any], name: str) -> tuple[str, ...]:
    return split(questions.get(name, {}).get("asked", ""))
