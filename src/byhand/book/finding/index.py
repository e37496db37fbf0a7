"""The index: every answer of `where` by name, from the registry, the entries, the tables and the source.

`index.json` keeps the answers, and the words that lead to each. `python -m byhand.book.pages` writes it; it holds
definitions and no lines, so an edit makes it stale only where a name, a formula or a table changes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import lru_cache
from typing import Any

from byhand.book.entries.contract import ENTRIES, ByStem
from byhand.book.finding.equations import of_equations
from byhand.book.finding.finding import Finding, split
from byhand.book.finding.flow import groups
from byhand.book.finding.others import DATA, data, others, places
from byhand.book.finding.phrases import formulas_of, phrases_of
from byhand.book.finding.stored import Index
from byhand.book.finding.words import Han
from byhand.book.words.language import Words
from byhand.book.words.tables import table

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
    return ByStem({finding.name: finding for finding in (*found, *places())})


def content() -> dict[str, Any]:
    """Return what the index holds, as plain values."""
    known = all_findings()
    asked = {name: split(row["asked"]) for name, row in data("questions").items()}
    libraries = {name: split(names) for name, names in data("libraries").items()}
    characters: dict[str, Any] = {**table(DATA / "han.json"), "words": data("regional")}
    kinds = [(words, [f.name for f in known.values() if f.kind == kind]) for kind, words in KINDS.items()]
    found: dict[str, Any] = {
        "answers": [finding.stored() for finding in known.values()],
        "phrases": phrases_of(known, asked, libraries, Han(**characters)),
        "formulas": formulas_of(findings().values(), data("formulas")),
        "groups": [[words.en, words.zh, members] for words, members in [*groups(), *kinds]],
        "synonyms": [row.split() for row in data("synonyms")["rows"].strip().split("\n")],
        "characters": characters,
        "sentences": [],
    }
    index = Index(found)
    found["sentences"] = _sentences(index, data("sentences"))
    for row in found["phrases"]:  # what the words are is not said again
        _, _, whole, words = row
        tokens = " ".join(index.tokens(words))
        row[2:] = ["" if whole == words.replace(" ", "") else whole, words, *([tokens] if tokens != words else [])]
    return found


def _sentences(index: Index, sentences: dict[str, dict[str, str]]) -> list[list[str]]:
    """Return each token of the sentences with the numbers of its answers, once for each sentence that has it."""
    told: dict[str, list[int]] = defaultdict(list)
    for name, languages in sentences.items():
        if name not in index.names:  # a guide whose page is not in this checkout
            continue
        for sentence in "\n".join(languages.values()).splitlines():
            for token in index.tokens(" ".join(index.said(sentence))):
                told[token].append(index.names[name])
    return [[token, " ".join(map(str, sorted(told[token])))] for token in sorted(told)]


def text() -> str:
    """Return the text of `index.json`: a line for each answer, phrase, formula and token of the sentences."""
    parts = []
    for name, rows in content().items():
        lists = isinstance(rows, list)
        lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows] if lists else []
        written = "[\n" + ",\n".join(lines) + "\n]" if lines else json.dumps(rows, ensure_ascii=False)
        parts.append(f'"{name}": {written}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
