"""The index: every answer of `where` by name, from the registry, the entries, the tables and the source.

`byhand/book/finding/index.json` keeps the answers, and the words that lead to each. `python docs/build` writes it; it
holds definitions and no lines, so an edit makes it stale only where a name, a formula or a table changes.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from functools import lru_cache, partial
from typing import Any

from byhand.book.entries.contract import ENTRIES, ByStem, Entry
from byhand.book.finding import search
from byhand.book.finding.equations import of_equations
from byhand.book.finding.finding import NOTHING, Finding
from byhand.book.finding.flow import groups
from byhand.book.finding.words import Language, stem
from byhand.book.words.language import Words
from byhand.book.words.tables import table
from byhand.engine.equation import registry
from where.kernels import kernels_of
from where.others import DATA, asked, data, others, places, split
from where.phrases import formulas_of, phrases_of, rows_of, words_of
from where.syntax import uses

KINDS = {
    "place": Words("Wiring, recording, training, storing", "组装、记录、训练与存储"),
    "setting": Words("Settings: the flags of the commands", "设置：各命令的选项"),
    "command": Words("Commands", "命令"),
    "guide": Words("Guides", "指南"),
    "lesson": Words("Worked examples", "手算例子"),
    "term": Words("Terms", "术语"),
    "absent": Words("Not in this model", "本模型没有的"),
}


def all_findings() -> dict[str, Finding]:
    """Return all answers by name; among equally good ones the earlier comes first."""
    return {**findings(), **_others(tuple(ENTRIES))}


@lru_cache(maxsize=4)
def _others(stems: tuple[str, ...]) -> dict[str, Finding]:
    return {finding.name: finding for finding in others(findings().values())}


def findings() -> dict[str, Finding]:
    """Return the answers that point at code: equations, as data flows, and places."""
    return _findings(tuple(of_equations().values()))


@lru_cache(maxsize=4)
def _findings(found: tuple[Finding, ...]) -> dict[str, Finding]:
    roles = {name: getattr(registry[name], "role", "") for name in ENTRIES}
    equations = (replace(f, kernels_at=kernels_of(f.name), uses=uses(f.name, roles[f.name])) for f in found)
    return ByStem({finding.name: finding for finding in (*equations, *places())})


def content() -> dict[str, Any]:
    """Return what the index holds."""
    known = all_findings()
    kinds = [(words, [f.name for f in known.values() if f.kind == kind]) for kind, words in KINDS.items()]
    rows = [row.split() for row in data("synonyms")["rows"].strip().split("\n")]
    synonyms = {stem(word): f"={row[0]}" for row in rows for word in row}
    words = {**table(DATA / "han.json"), "regional": data("regional"), "synonyms": synonyms}
    language, numbers = Language(**words), {name: number for number, name in enumerate(known)}
    libraries = {name: split(names) for name, names in data("libraries").items()}
    told = list(phrases_of(known, asked(findings().values()), libraries))
    formulas = [(entry.stem, entry.notations) for entry in ENTRIES.values()]
    formulas += [(name, row.get("formulas", ())) for name, row in data("places").items()]
    formulas += data("formulas").items()
    return {
        "answers": [_kept(finding) for finding in known.values()],
        "groups": [[words.en, words.zh, members] for words, members in [*groups(), *kinds]],
        "language": words,
        "words": words_of(told),
        "phrases": rows_of(told, known, language),
        "formulas": [[numbers[name], *row] for name, *row in formulas_of(findings().values(), formulas)],
    }


def _kept(finding: Finding) -> dict[str, Any]:
    """Return every field of an answer that is not its default."""
    values = ((f.name, getattr(finding, f.name)) for f in fields(finding))
    return {name: value for name, value in values if value and value != NOTHING}


_written = partial(json.dumps, ensure_ascii=False, default=lambda words: [words.en, words.zh])


def fresh() -> search.Index:
    """Return the index of this process, which may have other equations than the package."""
    return _fresh(tuple(ENTRIES.values()))


@lru_cache(maxsize=2)
def _fresh(entries: tuple[Entry, ...]) -> search.Index:
    return search.Index(json.loads(text()))


search.fresh = fresh


def text() -> str:
    """Return the text of `index.json`: a line for each answer, phrase and formula."""
    parts = []
    for name, rows in content().items():
        lists = isinstance(rows, list) and not isinstance(rows[0], str)
        lines = [_written(row, separators=(",", ":")) for row in rows] if lists else []
        written = "[\n" + ",\n".join(lines) + "\n]" if lines else _written(rows)
        parts.append(f'"{name}": {written}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
