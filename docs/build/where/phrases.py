"""The phrases and formulas that lead to each answer, as the index keeps them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding import formula, source
from byhand.book.finding.finding import Finding
from byhand.book.finding.flow import concepts
from byhand.book.finding.words import Language
from byhand.book.words.language import PAGE
from byhand.book.words.plain_math import plain

# how much a phrase of each kind of answer counts: a page is not the first answer to the name of an equation
KINDS = {"place": 0.93, "guide": 0.97, "lesson": 0.88}
NAME, TITLE, ASKED, OWN_TERM, NAME_ELSEWHERE, OTHER_TERM, SYMBOL, TOLD = 1.0, 0.99, 0.98, 0.97, 0.95, 0.9, 0.8, 0.7


Phrase = tuple[str, str, float]  # an answer's name, the text, how much it counts


def phrases_of(
    known: Mapping[str, Finding], asked: Mapping[str, Iterable[str]], libraries: Mapping[str, Iterable[str]]
) -> Iterator[Phrase]:
    """Yield every text that leads to an answer."""
    owner = {words.en.casefold(): f.name for f in reversed([*known.values()]) for words in (f.title, f.term)}
    for name, finding in known.items():
        yield from ((name, text, weight) for text, weight in _of_finding(finding))
        yield from ((name, text, ASKED) for text in asked.get(name, ()))
        yield from ((name, text, NAME_ELSEWHERE) for text in libraries.get(name, ()))
    for concept in concepts():
        own = owner[concept.en.casefold()]
        ranks = {own: TITLE} | {name: OTHER_TERM - 0.05 * i for i, name in enumerate(concept.entries) if name != own}
        for name, weight in ranks.items():
            yield from ((name, text, weight) for text in (concept.en, concept.zh, *concept.also))


def rows_of(told: Iterable[Phrase], known: Mapping[str, Finding], language: Language) -> list[list[Any]]:
    """Return the answer's number, the weight, the key and the tokens of every phrase, the best of equal ones.

    A name of a library is found whole: it has no tokens. The end of a dotted name is a key of its own.
    """
    numbers = {name: number for number, name in enumerate(known)}
    found: dict[tuple[int, str], list[Any]] = {}

    def add(number: int, text: str, weight: float, tokens: Iterable[str]) -> None:
        row = [number, round(weight, 3), language.key(text), " ".join(tokens)]
        old = found.setdefault((number, row[2]), row)
        if old[1] < row[1] or (old[1] == row[1] and not old[3]):
            old[:] = row

    for name, text, weight in told:
        whole = weight == NAME_ELSEWHERE and text.isascii()
        weight *= KINDS.get(known[name].kind, 1.0)
        add(numbers[name], text, weight, () if whole else language.tokens(text))
        for end in re.split(r"[.:]+|->", text)[1:] if " " not in text else ():
            add(numbers[name], end, weight - 0.1, ())
    return [row for (_, key), row in found.items() if key]


def words_of(told: Iterable[Phrase]) -> list[str]:
    """Return the Latin words of all phrases, for words that are misspelt."""
    return sorted({word for _, text, _ in told if text.isascii() for word in re.findall("[a-z]{4,}", text.lower())})


def _of_finding(finding: Finding) -> Iterator[tuple[str, float]]:
    """Yield what an answer says of itself, with weights."""
    yield finding.name.rpartition("/")[2] if finding.kind in ("guide", "term") else finding.name, NAME
    for title in (finding.title.en, finding.title.zh):
        for part in dict.fromkeys((title, re.split(r" ?[（(]", title)[0])):
            yield part, TITLE
    for seed in finding.seed_names:
        last = seed.rpartition("::")[2]
        yield seed, NAME if finding.name in last.lower() else OWN_TERM  # where several share a name: the same word
        yield last, OWN_TERM - 0.01
    for symbol in finding.symbols:
        if len(symbol.name) > 2:
            yield symbol.name, OTHER_TERM
        for text in (symbol.meaning.en, symbol.meaning.zh):
            yield text, SYMBOL
    letters = map(plain, (*(symbol.latex for symbol in finding.symbols), *finding.settings.values()))
    yield from ((letter, OTHER_TERM) for letter in letters if not letter.isascii())
    for use in finding.uses:
        if use.result:
            yield use.result, OTHER_TERM
            yield f"{use.scope}.{use.result}", OTHER_TERM
    for words in finding.says:
        yield words.en, TOLD
        yield words.zh, TOLD
    if entry := ENTRIES.get(finding.name):
        for words in filter(None, (entry.goal, entry.why, entry.why_back, *entry.why_back_of.values())):
            yield words.en, TOLD
            yield words.zh, TOLD
    if finding.kind == "guide":
        for ending in (PAGE.en, PAGE.zh):
            page = source.PACKAGE.parents[1] / finding.pages / f"{finding.name.rpartition('/')[2]}{ending}"
            for heading in re.findall(r"^## (?:\d+\. )?(.+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
                yield heading, SYMBOL


def formulas_of(findings: Iterable[Finding], others: Iterable[tuple[str, Iterable[str]]]) -> list[list[Any]]:
    """Return the answer's name, the formula without layout, and its tokens, for each formula and part of one."""
    found: dict[tuple[str, str], list[Any]] = {}

    def add(name: str, text: str) -> None:
        if tokens := formula.tokens(text):
            row = [name, formula.compact(text), " ".join(tokens)]
            found.setdefault((name, row[1]), row)

    for finding in findings:
        own = [
            part
            for text in (finding.latex, finding.latex_derivative)
            for part in (text, *re.split(r",\s*\\quad|\\quad", text))
        ]
        own += [
            part
            for text in (finding.formula.en, finding.derivative_formula.en)
            for part in re.split(r",\s{2,}|;\s|\n", text)
        ]
        own += [s.latex for s in finding.symbols if "_" in s.latex]
        for text in own:
            add(finding.name, text)
    for name, texts in others:
        for text in texts:
            add(name, text)
    return list(found.values())
