"""Byte-pair encoding: words become ids by merges learnt from a text, here or elsewhere.

Text is pre-tokenised into words (`splitting`). A word starts as its UTF-8 bytes; the adjacent pair of least rank is
merged, the leftmost among equals, until no pair has a merge. `plain.py` is the reference; `compiled.py` is faster.

Source      Sennrich, Haddow & Birch 2016, arXiv:1508.07909; Radford et al. 2019, section 2.2
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from byhand.errors import DataError
from byhand.tokenizers import compiled
from byhand.tokenizers.composing import composed
from byhand.tokenizers.merging import every_pair, listed, merged
from byhand.tokenizers.splitting import How, pieces, require_searchable, split_of, words
from byhand.tokenizers.symbols import byte_symbols, encoded, is_pair, is_vocabulary, ordinary, visible_bytes
from byhand.tokenizers.tokenizer import Table, Tokenizer, utf8

KEPT = 1 << 18  # words in the cache of ids
LONG = 1 << 16  # bytes of a text, or of its first block, that make loading the compiled loops worthwhile


class BytePairTokenizer(Tokenizer):
    """Token ids from a vocabulary and its merges.

    vocabulary  symbol to id; a symbol writes each byte as one visible character (`visible_bytes`)
    merges      pairs of symbols in order of rank; every merged pair must be a symbol too. None: any two tokens whose
                bytes are a token, ranked by its id, and a word that is a token skips the merges (tiktoken)
    split       the pre-tokenizer: one of `splitting.SPLITS` or `patterns.NAMED`, or steps of patterns
    special     texts that are tokens wherever they occur; they decode to the same texts
    whole       a word that is a symbol becomes its id without merging
    normal      "NFC": text is normalised before it is split, so decoding may return another text
    """

    kind = "bpe"

    def __init__(
        self, vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]] | None, *, split: How = "gpt2",
        special: Mapping[str, int] | None = None, whole: bool = False, normal: str = "",
    ) -> None:  # fmt: skip
        self.vocabulary, self.special = vocabulary, dict(special or {})
        self.split, self.whole, self.normal = split_of(split), whole or merges is None, normal
        self.faithful = not normal
        self.merges = None if merges is None else list(merges)
        byte_of = byte_symbols()
        token_bytes: dict[int, bytes] = {}
        for symbol, token in vocabulary.items():
            if token in token_bytes:
                raise DataError(f"the vocabulary has two symbols with the id {token}. Use another vocab.json.")
            by_sign = [byte_of.get(sign) for sign in symbol]
            token_bytes[token] = encoded(symbol) if None in by_sign else bytes(by_sign)  # pyright: ignore[reportArgumentType]
        require_searchable(sum(map(len, self.special)))
        for text, token in self.special.items():
            if not text:
                raise DataError("a special token is empty. Use one with a text.")
            if token_bytes.setdefault(token, encoded(text)) != encoded(text):
                raise DataError(f"the special token {text[:80]!r} has the id of another token. Use another copy.")
        self.pairs = every_pair(vocabulary, vocabulary) if self.merges is None else listed(self.merges, vocabulary)
        self._byte_ids = [vocabulary.get(sign) for sign in visible_bytes()]
        # Words are looked up as visible characters: a symbol with any other character is not a word.
        words = {symbol: token for symbol, token in vocabulary.items() if byte_of.keys() >= {*symbol}}
        self._whole = {token_bytes[token]: token for token in words.values()} if self.whole else {}
        self._words: dict[bytes, list[int]] = {}
        super().__init__(token_bytes)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> BytePairTokenizer:
        """Return the tokenizer from a vocabulary and its merges, each a list of two symbols."""
        vocabulary, merges, special = values.get("vocabulary"), values.get("merges", ()), values.get("special", {})
        if not is_vocabulary(vocabulary):
            raise DataError("its vocabulary is not one table of symbols and their ids")
        if not is_vocabulary(special):
            raise DataError("its special tokens are not one table of texts and their ids")
        if merges is not None and not (isinstance(merges, list) and all(map(is_pair, merges))):
            raise DataError("its merges are not a list of pairs of symbols")
        split, whole, normal = values.get("split", "gpt2"), values.get("whole", False), values.get("normal", "")
        if type(whole) is not bool or normal not in ("", "NFC"):
            raise DataError("its values of whole or normal are invalid")
        pairs = None if merges is None else [(left, right) for left, right in merges]
        return cls(vocabulary, pairs, split=split, special=special, whole=whole, normal=normal)

    def as_json(self) -> dict[str, Any]:
        """Return the vocabulary and the merges, and the differences from GPT-2's tokenizer."""
        others = {
            "split": (list(map(list, self.split.steps)) or self.split.name, "gpt2"),
            "special": (self.special, {}),
            "normal": (self.normal, ""),
            "whole": (self.whole, self.merges is None),
        }
        merges = None if self.merges is None else list(map(list, self.merges))
        given = {name: value for name, (value, usual) in others.items() if value != usual}
        return {"vocabulary": dict(self.vocabulary), "merges": merges, **given}

    def symbols(self) -> dict[str, int]:
        """Return the ids of all symbols and special tokens; DataError if a text is both, with two ids."""
        for text, token in self.special.items():
            if self.vocabulary.get(text, token) != token:
                raise DataError(
                    f"the special token {text[:80]!r} is also a symbol of the vocabulary. Use another text."
                )
        return {**self.vocabulary, **self.special}

    def encode_blocks(self, blocks: Iterable[bytes]) -> Iterator[Sequence[int] | np.ndarray]:
        """Yield the ids of a text that comes in blocks. DataError if the vocabulary lacks one of its bytes."""
        blocks = iter(blocks)
        first = next(blocks, b"")
        blocks = chain([first], blocks)
        if self.normal:
            blocks = composed(blocks, self.normal, self.special)
        if self._compiles(first):
            try:
                yield from self._encoder.encode(blocks)
            except compiled.Unknown as unknown:
                self._of_text(unknown.args[0])  # names the byte
            return
        for found in pieces(blocks, self.split, self.special):
            yield [token for piece in found for token in self._ids(piece)]

    def with_special(self, texts: Collection[str]) -> BytePairTokenizer:
        """Return the tokenizer with these texts as special tokens, if they are symbols."""
        more = {text: self.vocabulary[text] for text in texts if text in self.vocabulary and text not in self.special}
        if not more:
            return self
        special = {**self.special, **more}
        vocabulary = ordinary(self.vocabulary, self.merges or (), special)
        return BytePairTokenizer(
            vocabulary,
            self.merges,
            split=self.split.steps or self.split.name,
            special=special,
            whole=self.whole,
            normal=self.normal,
        ).using(self.conventions)

    @cached_property
    def _encoder(self) -> compiled.Encoder:
        byte_ids = [-1 if token is None else token for token in self._byte_ids]
        return compiled.Encoder(self.split, self.special, byte_ids, self.pairs, self._whole, self._of_text)

    def _ids(self, piece: str) -> list[int]:
        """Return the ids of a word, or of a special token."""
        return [self.special[piece]] if piece in self.special else self._of_word(piece)

    def encode_plain(self, text: str, shown: Table, first: bool = True) -> list[int]:
        """Return the ids of a text without special tokens."""
        text = text.translate(shown)
        whole = b"".join(composed([utf8(text)], self.normal, ())) if self.normal else utf8(text)
        if self._compiles(whole):
            with suppress(compiled.Unknown):
                return self._encoder.plain(whole).tolist()
        return self._of_text(whole)

    def _compiles(self, text: bytes) -> bool:
        return len(text) >= LONG and not self.split.steps and compiled.available()

    def _of_text(self, text: bytes) -> list[int]:
        pieces = words(text.decode("utf-8", "surrogateescape"), self.split)
        return [token for piece in pieces for token in self._of_word(piece)]

    def _of_word(self, piece: str) -> list[int]:
        word = utf8(piece)
        if (ids := self._words.get(word)) is None:
            if len(self._words) >= KEPT:
                self._words.clear()
            whole = self._whole.get(word)
            ids = self._words[word] = merged(self._bytes_of(word, piece), self.pairs) if whole is None else [whole]
        return ids

    def _bytes_of(self, word: bytes, piece: str) -> list[int]:
        """Return the ids of a word's bytes. DataError if a byte has none."""
        if lacking := [visible_bytes()[byte] for byte in word if self._byte_ids[byte] is None]:
            raise DataError(f"the vocabulary has no token for {lacking[0]!r}, which the text {piece[:80]!r} needs.")
        return [token for byte in word if (token := self._byte_ids[byte]) is not None]

    def merged_alike(self) -> bool:
        """Return whether merging alone makes every token that a word can be, so that look-ups change nothing."""
        return all(merged(self._bytes_of(word, ""), self.pairs) == [token] for word, token in self._whole.items())

    def listed_merges(self) -> list[tuple[str, str]]:
        """Return the merges; for tiktoken's ranks, the last merge that makes each token from its bytes.

        Raises DataError if no two tokens make a token of the ranks.
        """
        if self.merges is not None:
            return self.merges
        visible, found = visible_bytes(), list[tuple[str, str]]()
        symbol_of = {token: symbol for symbol, token in self.vocabulary.items()}
        for token, symbol in sorted(symbol_of.items()):
            if len(symbol) > 1:
                parts = merged([self.vocabulary[sign] for sign in symbol if sign in visible], self.pairs, token)
                if len(parts) != 2:
                    raise DataError(f"no merge of two tokens makes {symbol[:80]!r}. Write it as .tiktoken.")
                found.append((symbol_of[parts[0]], symbol_of[parts[1]]))
        return found
