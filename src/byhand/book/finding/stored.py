"""The index as search reads it: answers, and the phrases, tokens and formulas that lead to them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property, lru_cache
from math import log
from pathlib import Path
from typing import Any

from byhand.book.finding.finding import STORED, Finding, restored
from byhand.book.finding.words import HAN, Han, of_word, parts, stem
from byhand.book.words.language import Words
from byhand.book.words.tables import fits, table
from byhand.errors import ByhandError, brief

INDEX = Path(__file__).with_name("index.json")
LONGEST = 5  # characters of a Chinese word that has synonyms
CAMEL = re.compile(r"[A-Za-z\d]*[a-z\d][A-Z][A-Za-z\d]*")
HUMP = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
LITTLE = 0.5  # the weight of one letter or character, of a meaning, and of two characters that no phrase has together


class Index:
    """Every answer of `where`, and the phrases that lead to it."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.answers: list[dict[str, Any]] = content["answers"]
        self.names = {answer["name"]: number for number, answer in enumerate(self.answers)}
        self.groups = [(Words(en, zh), members) for en, zh, members in content["groups"]]
        self.rows: list[list[Any]] = content["phrases"]
        self.by_key: dict[str, list[list[Any]]] = defaultdict(list)
        """The phrases that have the same letters."""
        for row in self.rows:
            self.by_key[row[2] or row[3].replace(" ", "")].append(row)
        self.han = Han(**content["characters"])
        self.formulas = [(name, compact, tuple(tokens.split())) for name, compact, tokens in content["formulas"]]
        """Every formula: its answer's name, its text without layout, its tokens."""
        self.synonyms = {
            word if HAN.match(word) else stem(word): f"={row[0]}" for row in content["synonyms"] for word in row
        }
        """The token of a meaning by each word that has it: a stem, or Chinese characters."""
        self._sentences: dict[str, str] = dict(content["sentences"])
        self._require_whole()
        self._restored: dict[int, Finding] = {}
        self._masses: dict[int, float] = {}
        self._rarity: dict[str, float] = {}
        self._told: dict[str, Counter[int]] = {}
        self._tokens: dict[str, tuple[str, ...]] = {}

    def _require_whole(self) -> None:
        """Raise TypeError, LookupError or ValueError for what only a later search would stumble over."""
        listed = [self.names[name] for _, members in self.groups for name in members]
        told = map(int, " ".join(self._sentences.values()).split())
        if max(*listed, *(row[0] for row in self.rows), *told) >= len(self.answers):
            raise ValueError("a phrase leads to no answer")
        sum(row[1] for row in self.rows)
        "".join(text for row in self.rows for text in row[2:])

    def finding(self, number: int) -> Finding:
        """Return an answer."""
        if number not in self._restored:
            if not fits(self.answers[number], STORED):
                raise damaged(f"the answer {self.answers[number]['name']!r} is not written as others are")
            self._restored[number] = restored(self.answers[number])
        return self._restored[number]

    def is_absent(self, number: int) -> bool:
        """Return whether an answer is a technique that the model lacks."""
        return self.answers[number].get("kind") == "absent"

    def findings(self) -> list[Finding]:
        """Return all answers."""
        return [self.finding(number) for number in range(len(self.answers))]

    @cached_property
    def postings(self) -> dict[str, list[int]]:
        """The phrases with a token, by their numbers."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(self.rows):
            for token in row[-1].split():
                found[token].append(number)
        return dict(found)

    @cached_property
    def words(self) -> dict[str, None]:
        """The Latin words of all phrases, as a set in order."""
        return dict.fromkeys(word for row in self.rows for word in row[3].split() if word.isascii())

    def knows(self, token: str) -> bool:
        """Return whether a phrase or a sentence has a token."""
        return token in self.postings or token in self._sentences

    def told(self, token: str) -> Counter[int]:
        """Return how many phrases and sentences of each answer have a token."""
        if token not in self._told:
            found = Counter(self.rows[number][0] for number in self.postings.get(token, ()))
            found.update(map(int, self._sentences.get(token, "").split()))
            self._told[token] = found
        return self._told[token]

    def lacking(self, word: str) -> float:
        """Return what share of the phrases and sentences with a word is about techniques that the model lacks."""
        told = self.told(stem(word))
        return sum(told[number] for number in told if self.is_absent(number)) / told.total() if told else 1.0

    def rarity(self, token: str) -> float:
        """Return the weight of a token: the fewer answers it leads to, the more it tells."""
        if token not in self._rarity:
            told = len(self.told(token))
            is_little = len(token) == 1 or token[0] == "=" or (HAN.match(token) and not told)
            share = LITTLE if is_little else 1.0
            self._rarity[token] = share * log((len(self.answers) + 1) / (told + 0.5))
        return self._rarity[token]

    def mass(self, number: int) -> float:
        """Return the weight of all tokens of a phrase."""
        if number not in self._masses:
            self._masses[number] = sum(map(self.rarity, self.rows[number][-1].split()))
        return self._masses[number]

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
        """Return the words of a question that tell something; unknown names in their pieces: Switch, Config."""
        return parts(self.han.plain(CAMEL.sub(self._pieces, query)))

    def _pieces(self, name: re.Match[str]) -> str:
        return name[0] if name[0].lower() in self.words else HUMP.sub(" ", name[0])


@lru_cache(maxsize=1)
def stored() -> Index:
    """Return the index of the package; ByhandError if it is damaged."""
    content = table(INDEX)
    try:
        return Index(content)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise damaged(brief(error)) from None


def damaged(why: str) -> ByhandError:
    """Return the error for an index that cannot be used."""
    return ByhandError(f"{INDEX} is no index: {why}. Restore the file.")
