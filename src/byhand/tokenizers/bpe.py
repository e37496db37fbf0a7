"""Byte-pair encoding in the form of GPT-2: vocab.json and merges.txt, read from files.

Text is cut into words (contractions, letters, digits, other signs, spaces; a space belongs to the word after it).
A word starts as its UTF-8 bytes; of all neighbours, the pair that stands first in merges.txt is joined, everywhere
in the word, until no pair is listed. The files write each byte as one visible character.

Source      Sennrich, Haddow & Birch 2016, arXiv:1508.07909; Radford et al. 2019, section 2.2
"""

from __future__ import annotations

import codecs
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from byhand.errors import DataError, reason
from byhand.files.reading import parse_json, read_regular
from byhand.tokenizers.tokenizer import Tokenizer, utf8

WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", re.ASCII)
UNTIL_A_SPACE = re.compile(r".*\S(?=[ \t\n\r])", re.DOTALL)  # all up to the last space that follows a word

MOST = 1 << 26  # bytes of a file; GPT-2's have 1 million, today's largest 10 million
LARGEST = 1 << 20  # id; no model has a larger vocabulary
KEPT = 1 << 18  # words whose ids are kept


class BytePairTokenizer(Tokenizer):
    """Token ids by a vocabulary and its merges.

    vocabulary  symbol to id; a symbol writes each byte as one visible character (`visible_bytes`)
    merges      pairs of symbols, the first to be joined first; every joined pair must be a symbol too
    """

    kind = "bpe"

    def __init__(self, vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]]) -> None:
        self.vocabulary = vocabulary
        self.ranks: dict[tuple[str, str], int] = {}
        for rank, pair in enumerate(merges):
            if (joined := "".join(pair)) not in vocabulary:
                raise DataError(
                    f"merge {rank + 1} makes {joined[:80]!r}, which the vocabulary lacks. Use files of one set."
                )
            self.ranks.setdefault(pair, rank)
        self._visible = visible_bytes()
        byte_of = {sign: byte for byte, sign in enumerate(self._visible)}
        token_bytes: dict[int, bytes] = {}
        for symbol, token in vocabulary.items():
            if token in token_bytes:
                raise DataError(f"the vocabulary has two symbols with the id {token}. Use another vocab.json.")
            known = all(sign in byte_of for sign in symbol)  # a special token is its own text
            token_bytes[token] = bytes(map(byte_of.__getitem__, symbol)) if known else utf8(symbol)
        self._words: dict[str, list[int]] = {}
        super().__init__(token_bytes)

    @classmethod
    def from_files(cls, vocab: Path, merges: Path) -> BytePairTokenizer:
        """Read vocab.json (symbol to id) and merges.txt (two symbols a line, `#version` first)."""
        try:
            vocabulary = parse_json(_text(vocab), depth=1)
        except DataError:
            raise
        except ValueError:
            raise DataError(f"{vocab} is not JSON. Use the vocab.json of the tokenizer.") from None
        if not _is_vocabulary(vocabulary):
            raise DataError(
                f"{vocab} must be one JSON object of symbols and their ids. Use the tokenizer's vocab.json."
            )
        pairs: list[tuple[str, str]] = []
        for number, line in enumerate(_text(merges).split("\n"), 1):
            if not line.strip() or (number == 1 and line.startswith("#version")):
                continue
            left, _, right = line.rstrip("\r").partition(" ")
            if not left or not right or " " in right:
                raise DataError(
                    f"{merges}, line {number}: {line[:80]!r} is not a pair of symbols. Use the merges.txt of {vocab}."
                )
            pairs.append((left, right))
        return cls(vocabulary, pairs)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> BytePairTokenizer:
        """Return the tokenizer of a vocabulary and its merges, each merge a list of two symbols."""
        vocabulary, merges = values.get("vocabulary"), values.get("merges")
        if not _is_vocabulary(vocabulary):
            raise DataError("its vocabulary is not one table of symbols and their ids")
        if not isinstance(merges, list) or not all(map(_is_pair, merges)):
            raise DataError("its merges are not a list of pairs of symbols")
        return cls(vocabulary, [(left, right) for left, right in merges])

    def as_json(self) -> dict[str, Any]:
        """Return the vocabulary and the merges."""
        return {"vocabulary": dict(self.vocabulary), "merges": list(map(list, self.ranks))}

    def encode_blocks(self, blocks: Iterable[bytes]) -> Iterator[list[int]]:
        """Yield the ids of a text that comes in blocks. DataError if the vocabulary lacks a byte of it."""
        for text in _whole_words(blocks):
            yield [token for word in words(text) for token in self._encode_word(word)]

    def _encode_word(self, word: str) -> list[int]:
        if word not in self._words:
            symbols = self._merged([self._visible[byte] for byte in utf8(word)])
            if missing := [s for s in symbols if s not in self.vocabulary]:
                raise DataError(
                    f"the vocabulary has no token for {missing[0]!r}, which the text {word[:80]!r} needs."
                )
            if len(self._words) >= KEPT:
                self._words.clear()
            self._words[word] = [self.vocabulary[s] for s in symbols]
        return self._words[word]

    def _merged(self, symbols: list[str]) -> list[str]:
        """Join pairs, the earliest merge first, until none is listed."""
        while len(symbols) > 1:
            pairs = set(itertools.pairwise(symbols))
            first = min(pairs, key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if first not in self.ranks:
                break
            joined: list[str] = []
            i = 0
            while i < len(symbols):
                both = tuple(symbols[i : i + 2]) == first
                joined.append("".join(first) if both else symbols[i])
                i += 1 + both
            symbols = joined
        return symbols


def words(text: str) -> list[str]:
    """Cut a text into GPT-2's words; joined, they are the text."""
    # `re` knows no Unicode classes, so each sign is first replaced by an ASCII one of its kind.
    kinds = "".join(map(_kind, text))
    return [text[match.start() : match.end()] for match in WORD.finditer(kinds)]


def _whole_words(blocks: Iterable[bytes]) -> Iterator[str]:
    """Yield a text in parts that end before a space after a word: later text does not change their words."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    left = ""
    for block in blocks:
        left += decoder.decode(block)
        if match := UNTIL_A_SPACE.match(left):
            yield match[0]
            left = left[match.end() :]
    yield left + decoder.decode(b"", final=True)


def _is_vocabulary(values: object) -> TypeGuard[dict[str, int]]:
    """Return whether JSON is one table of symbols and ids."""
    return isinstance(values, dict) and all(type(i) is int and 0 <= i < LARGEST for i in values.values())


def _is_pair(values: object) -> bool:
    return isinstance(values, list) and len(values) == 2 and all(isinstance(v, str) for v in values)


def _kind(sign: str) -> str:
    if sign.isascii():
        return sign
    category = unicodedata.category(sign)[0]
    if category == "L":
        return "A"
    if category == "N":
        return "0"
    return "\t" if sign.isspace() else "!"


def visible_bytes() -> list[str]:
    """Return for each byte the character that writes it: itself if it is a visible Latin-1 sign, else from 256 on."""
    plain = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def _text(path: Path) -> str:
    try:
        return read_regular(path, MOST).decode("utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}. Check the path and its permissions.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text. Use the file of the tokenizer.") from None
