"""Search: a question's words, names and formulas against the phrases that lead to each answer.

A name counts if a phrase has the same letters. Words count twice, each by how few answers it leads to: by what an
answer's best phrase shares with the question (Dice's coefficient), and by the share of the question's words that any
phrase of the answer has (BM25 with k1 = 1 and b = 0: more text about an answer is no fault). A formula counts by its
likeness to the formulas of equations and places.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, lru_cache
from math import log
from pathlib import Path
from typing import Any

from byhand.book.finding import formula
from byhand.book.finding.finding import Finding, restored
from byhand.book.finding.words import Language, wide
from byhand.book.words.language import Words
from byhand.book.words.tables import table
from byhand.errors import ByhandError

INDEX = Path(__file__).with_name("index.json")
LONGEST = 1000  # characters of a query: a derivative in LaTeX has 528
FOUND = 0.28  # the lowest score that counts as an answer
SPREAD = 0.45  # an answer that is worse than the best by more is noise
LITTLE = 0.5  # the weight of one letter, one character, a meaning
BEST, ALL, ALIKE = 0.5, 0.75, 1.2  # what an answer's best phrase, all its phrases, the likeness of a formula count
FORMULA = re.compile(r"[\\^_=<>≤/+×√Σ∑∂·←$(@\[]|\s-\s|^\s*[A-Z]( [A-Z])+\s*$")
DOTTED = re.compile(r"(?a:\w+(?:\.\w+)+)")
NAME = re.compile(r"[A-Za-z][A-Za-z\d_.]{3,}")
IS_NAME = re.compile(r"\w[._]\w|[a-z][A-Z]")
WORD = re.compile("[A-Za-z]{4,}")


@dataclass(frozen=True, slots=True)
class Match:
    """An answer and its score."""

    score: float
    finding: Finding


class Index:
    """Every answer of `where`, and the phrases and formulas that lead to it."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.answers: list[dict[str, Any]] = content["answers"]
        self.names = {answer["name"]: number for number, answer in enumerate(self.answers)}
        self.groups = [(Words(en, zh), members) for en, zh, members in content["groups"]]
        self.language = Language(**content["language"])
        self.words: list[str] = content["words"]
        self.formulas = [(number, text, tuple(tokens.split())) for number, text, tokens in content["formulas"]]
        self.phrases: list[tuple[int, float, str, str]] = content["phrases"]
        self.keys = defaultdict[str, list[tuple[int, float]]](list)
        self.postings = defaultdict[str, list[int]](list)
        for at, (number, weight, key, tokens) in enumerate(self.phrases):
            self.keys[key].append((number, weight))
            for token in tokens.split():
                self.postings[token].append(at)
        self._rarity: dict[str, float] = {}

    def finding(self, number: int) -> Finding:
        """Return an answer."""
        return self._findings[number]

    @cached_property
    def _findings(self) -> list[Finding]:
        return [restored(answer) for answer in self.answers]

    def findings(self) -> list[Finding]:
        """Return all answers."""
        return self._findings

    def told(self, token: str) -> Counter[int]:
        """Return how many phrases of each answer have a token."""
        return Counter(self.phrases[at][0] for at in self.postings.get(token, ()))

    def rarity(self, token: str) -> float:
        """Return the weight of a token: the fewer answers it leads to, the more it tells."""
        if token not in self._rarity:
            told = len(self.told(token))
            share = LITTLE if len(token) == 1 or token[0] == "=" or not (told or token.isascii()) else 1.0
            self._rarity[token] = share * log((len(self.answers) + 1) / (told + 0.5))
        return self._rarity[token]

    def corrected(self, query: str) -> str:
        """Return a question with the nearest known word for each Latin word that no phrase has."""

        def nearest(word: re.Match[str]) -> str:
            told = self.language.tokens(word[0])
            known = not told or told[0] in self.postings or word[0].lower() in self.words
            return word[0] if known else next(iter(get_close_matches(word[0].lower(), self.words, 1, 0.78)), word[0])

        return WORD.sub(nearest, query)


fresh: Callable[[], Index] | None = None
"""Makes an index of this process; `docs/build/where` sets it."""


def index() -> Index:
    """Return the package's index, or a fresh one if this process has other equations than it and can make one."""
    contract = sys.modules.get("byhand.book.entries.contract")
    if contract is None or fresh is None:
        return stored()
    known = {answer["name"] for answer in stored().answers if answer.get("kind", "equation") == "equation"}
    return stored() if known == contract.ENTRIES.keys() else fresh()


@lru_cache(maxsize=1)
def stored() -> Index:
    """Return the index of the package."""
    return Index(table(INDEX))


def search(query: str) -> list[Match]:
    """Return the answers to the query, best first; none if nothing is near enough.

    Raises ByhandError for a query that is longer than any formula, and for an equation that has no entry.
    """
    if len(query) > LONGEST:
        raise ByhandError(f"the query has {len(query):,} characters. Ask in at most {LONGEST:,}.")
    known, given = index(), query.strip()
    equations = sys.modules.get("byhand.engine.equation")
    if equations and given in equations.registry and given not in known.names:  # of this process alone
        from byhand.book.finding.equations import of_equations

        return [Match(1.0, of_equations()[given])]
    score = defaultdict[int, float](float)
    for number, one in (*_by_name(known, given), *_by_words(known, given), *_by_formula(known, given)):
        score[number] = max(score[number], one)
    least = max(FOUND, max(score.values(), default=0.0) - SPREAD)
    found = sorted((-one, number) for number, one in score.items() if one >= least)
    return [Match(min(-one, 1.0), known.finding(number)) for one, number in found]


def nearest(query: str, n: int = 5) -> list[str]:
    """Return the names and words that are most like a query without an answer."""
    known = index()
    return get_close_matches(wide(query).lower()[:LONGEST], [*known.names, *known.words], n, 0.3)


def _by_name(known: Index, given: str) -> Iterator[tuple[int, float]]:
    """A name, a title, a question to the letter; names of a program in it, and the ends of dotted ones."""
    if given in known.names:
        yield known.names[given], 4.0
    asked = [(given, 3.0), (given.partition("(")[0], 2.5)]
    asked += ((part, 1.9) for part in NAME.findall(given) if IS_NAME.search(part))
    for parts in (dotted.removesuffix(".weight").split(".") for dotted in DOTTED.findall(given)):
        asked += ((".".join(parts[at:]), 1.8 - 0.1 * (at + 1 == len(parts))) for at in range(1, len(parts)))
        asked += ((part, 1.2) for part in parts)
    for text, sure in asked:
        key = known.language.key(text)
        if text == given or len(key) > 2:
            yield from ((number, sure * weight) for number, weight in known.keys.get(key, ()))


def _by_words(known: Index, given: str) -> Iterator[tuple[int, float]]:
    asked = known.language.tokens(given if FORMULA.search(given) else known.corrected(given))
    weights = {token: known.rarity(token) for token in asked}
    whole = sum(weights.values())
    common, best, share = (defaultdict[int, float](float) for _ in range(3))
    for token, weight in weights.items():
        for phrase in known.postings.get(token, ()):
            common[phrase] += weight
        for number, often in known.told(token).items():
            share[number] += weight * often / (often + 1) / whole
    for phrase, shared in common.items():
        number, weight, _, tokens = known.phrases[phrase]
        best[number] = max(best[number], weight * 2 * shared / (whole + sum(map(known.rarity, tokens.split()))))
    for number, part in share.items():
        yield number, BEST * best[number] + ALL * part


def _by_formula(known: Index, given: str) -> Iterator[tuple[int, float]]:
    asked = formula.tokens(wide(given)) if FORMULA.search(given) else ()
    if asked:
        compact = formula.compact(wide(given))
        for number, text, tokens in known.formulas:
            score = 2.5 if text == compact else ALIKE * formula.similarity(tuple(asked), tokens)
            if score > 0.6:
                yield number, score
