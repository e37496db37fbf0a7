"""The index as search reads it: answers, and the phrases, tokens and formulas that lead to them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property, lru_cache
from math import log
from pathlib import Path
from typing import Any, NamedTuple

from byhand.book.finding.finding import Finding, restored
from byhand.book.finding.words import HAN, Han, of_word, parts, stem
from byhand.book.words.language import Words

INDEX = Path(__file__).with_name("index.json")
MEANING = 0.6  # the weight of a meaning that several words have
LONGEST = 5  # characters of a Chinese word that has synonyms
SINGLE = 0.3  # the weight of one Chinese character, where that of a pair is 1


class Phrase(NamedTuple):
    """Words that lead to an answer."""

    answer: int
    weight: float
    tokens: list[str]


class Index:
    """Every answer of `where`, and the phrases that lead to it."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.answers: list[dict[str, Any]] = content["answers"]
        self.names = {answer["name"]: number for number, answer in enumerate(self.answers)}
        self.groups = [(Words(en, zh), members) for en, zh, members in content["groups"]]
        self.rows: list[list[Any]] = content["phrases"]
        self.han = Han(**content["characters"])
        self._formulas: list[list[Any]] = content["formulas"]
        self._synonyms: list[list[str]] = content["synonyms"]
        self._restored: dict[int, Finding] = {}
        self._tokens: dict[str, tuple[str, ...]] = {}

    def finding(self, number: int) -> Finding:
        """Return an answer."""
        if number not in self._restored:
            self._restored[number] = restored(self.answers[number])
        return self._restored[number]

    def findings(self) -> list[Finding]:
        """Return all answers."""
        return [self.finding(number) for number in range(len(self.answers))]

    @cached_property
    def by_key(self) -> dict[str, list[tuple[int, float]]]:
        """The answers to which a phrase leads that has the same letters, with weights."""
        found: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, weight, key, *_ in self.rows:
            found[key].append((number, weight))
        return dict(found)

    @cached_property
    def phrases(self) -> list[Phrase]:
        """All phrases that have words."""
        return [Phrase(row[0], row[1], row[4].split()) for row in self.rows if row[3]]

    @cached_property
    def postings(self) -> dict[str, list[int]]:
        """The phrases with a token, by their numbers."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, phrase in enumerate(self.phrases):
            for token in phrase.tokens:
                found[token].append(number)
        return dict(found)

    @cached_property
    def words(self) -> dict[str, None]:
        """The Latin words of all phrases, as a set in order."""
        return dict.fromkeys(word for row in self.rows for word in row[3].split() if word.isascii())

    @cached_property
    def rarity(self) -> dict[str, float]:
        """The weight of each token: the fewer answers it leads to, the more it tells."""
        found = {}
        for token, phrases in self.postings.items():
            answers = len({self.phrases[number].answer for number in phrases})
            share = SINGLE if len(token) == 1 and HAN.match(token) else MEANING if token[0] == "=" else 1.0
            found[token] = share * log((len(self.answers) + 1) / (answers + 0.5))
        return found

    @cached_property
    def masses(self) -> list[float]:
        """The weight of all tokens of each phrase."""
        return [sum(map(self.rarity.__getitem__, phrase.tokens)) for phrase in self.phrases]

    @cached_property
    def formulas(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Every formula: its answer's name, its text without layout, its tokens."""
        return [(name, compact, tuple(tokens.split())) for name, compact, tokens in self._formulas]

    @cached_property
    def synonyms(self) -> dict[str, str]:
        """The token of a meaning by each word that has it: a stem, or Chinese characters."""
        return {word if HAN.match(word) else stem(word): f"={group[0]}" for group in self._synonyms for word in group}

    def tokens(self, text: str) -> tuple[str, ...]:
        """Return the tokens of words that `parts` has left, once each, with those of their meanings."""
        found: dict[str, None] = {}
        for word in text.split():
            known = self._tokens.get(word)
            if known is None:
                known = self._tokens[word] = (*of_word(word), *self._meanings(word))
            for token in known:
                found[token] = None
        return tuple(found)

    def _meanings(self, word: str) -> list[str]:
        if not HAN.match(word):
            meaning = self.synonyms.get(stem(word))
            return [meaning] if meaning else []
        pieces = (word[i : i + size] for i in range(len(word)) for size in range(1, LONGEST + 1))
        return [self.synonyms[piece] for piece in pieces if piece in self.synonyms]

    def said(self, query: str) -> list[str]:
        """Return the words of a question that tell something."""
        return parts(self.han.plain(query))


@lru_cache(maxsize=1)
def stored() -> Index:
    """Return the index of the package."""
    return Index(json.loads(INDEX.read_text(encoding="utf-8")))
