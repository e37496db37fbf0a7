r"""SentencePiece's byte-pair encoding: pieces of characters, in which ▁ means a space.

There is no pre-tokenizer: a section, the text between two special tokens, gets a ▁ in front, its spaces become ▁,
and adjacent pieces are merged, least rank first, leftmost among equals. A character without a piece becomes its UTF-8
bytes, one token each. Decoding removes the added space, so the first token of a section stands for one byte less than
elsewhere.

Source      Kudo & Richardson 2018, arXiv:1808.06226
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np

from byhand.errors import DataError
from byhand.tokenizers.conventions import Conventions
from byhand.tokenizers.merging import every_pair, listed, merged
from byhand.tokenizers.sections import PREFIXES, SPACE, Sections
from byhand.tokenizers.splitting import require_searchable
from byhand.tokenizers.symbols import LARGEST, encoded, is_pair, is_vocabulary, ordinary
from byhand.tokenizers.tokenizer import END, Table, Tokenizer, utf8

KEPT = 1 << 18  # words in the cache of ids
BYTE = re.compile("<0x([0-9A-F]{2})>")


class SentencePieceTokenizer(Tokenizer):
    """Token ids from pieces and their merges.

    vocabulary  piece to id; <0x00> to <0xFF> are the bytes
    merges      pairs of pieces in order of rank. None: any two tokens that make a piece, ranked by `ranks`
    ranks       of pieces of several characters; their ids if not given. Equal ranks are merged from left to right
    special     texts that are tokens wherever they occur
    late        special tokens matched after normalisation, only with a ▁ before them, which they absorb: those with
                `normalized` true in `tokenizers`
    prefix      the sections that get a ▁: "each"; "words", those that do not begin with a space; "first", only the
                first of these, if the text begins with it; or "none"
    """

    kind = "sentencepiece"
    faithful = False  # ▁ decodes to a space, and encoding may add a space before a text

    def __init__(
        self, vocabulary: Mapping[str, int], merges: Iterable[tuple[str, str]] | None = None, *,
        ranks: Mapping[str, int] | None = None, special: Mapping[str, int] | None = None,
        late: Collection[str] = (), prefix: str = "each",
    ) -> None:  # fmt: skip
        self.vocabulary, self.special, self.prefix = vocabulary, dict(special or {}), prefix
        self.late = sorted(late)
        self.merges = None if merges is None else list(merges)
        self.byte_ids = _byte_ids(vocabulary)
        token_bytes = {token: bytes([byte]) for byte, token in enumerate(self.byte_ids)}
        if len(token_bytes) < 256:
            raise DataError("two bytes of the vocabulary have the same id. Use another copy of the tokenizer.")
        for piece, token in vocabulary.items():
            if not BYTE.fullmatch(piece):
                content = encoded(piece.replace(SPACE, " "))
                if not content or token_bytes.setdefault(token, content) is not content:
                    raise DataError(f"the piece {piece[:80]!r} is empty, or has the id of another one.")
        require_searchable(sum(map(len, self.special)))
        for text, token in self.special.items():
            known = {encoded(text), encoded(text.replace(SPACE, " "))}  # merges may make it from spaces, too
            if not text or token_bytes.setdefault(token, encoded(text)) not in known:
                raise DataError(f"the special token {text[:80]!r} is empty, or has the id of another token.")
        if any(text not in self.special or " " in text or SPACE in text for text in self.late):
            raise DataError("a late token has a space, or is not a special token.")
        plain = {piece: token for piece, token in vocabulary.items() if not BYTE.fullmatch(piece)}
        made = {piece: token for piece, token in plain.items() if len(piece) > 1 and piece not in self.special}
        self.ranks = dict(ranks) if ranks and any(made.get(piece) != rank for piece, rank in ranks.items()) else None
        self.first = dict[str, int]()  # ids of characters
        if self.merges is None:
            if self.ranks is not None and self.ranks.keys() != made.keys():
                raise DataError("its ranks are not those of its pieces of several characters")
            lacking = sorted({sign for piece in made for sign in piece} - plain.keys())
            self.first = {sign: LARGEST + k for k, sign in enumerate(lacking)}  # later merged into pieces, or bytes
            self.pairs = every_pair(self.first | plain, self.ranks or made)
        else:
            self.pairs = listed(self.merges, vocabulary)
        self.lacking = {token: sign for sign, token in self.first.items()}
        self.first |= {piece: token for piece, token in plain.items() if len(piece) == 1}
        self._sections = Sections(made, self.special, self.late, prefix)
        self._words: dict[str, list[int]] = {}
        super().__init__(token_bytes)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SentencePieceTokenizer:
        """Return the tokenizer from a vocabulary with its merges or ranks."""
        tables = {name: values.get(name, {}) for name in ("vocabulary", "ranks", "special")}
        if wrong := next((name for name, table in tables.items() if not is_vocabulary(table)), None):
            raise DataError(f"its {wrong} is not one table of texts and numbers")
        merges, late, prefix = values.get("merges"), values.get("late", []), values.get("prefix", "each")
        if merges is not None and not (isinstance(merges, list) and all(map(is_pair, merges))):
            raise DataError("its merges are not a list of pairs of pieces")
        if not isinstance(late, list) or not all(isinstance(text, str) for text in late):
            raise DataError("its late tokens are not a list of texts")
        if not isinstance(prefix, str) or prefix not in PREFIXES:
            raise DataError(f"its prefix is not one of {', '.join(PREFIXES)}")
        pairs = None if merges is None else [(left, right) for left, right in merges]
        return cls(
            tables["vocabulary"], pairs, ranks=tables["ranks"], special=tables["special"], late=late, prefix=prefix
        )

    def as_json(self) -> dict[str, Any]:
        """Return the vocabulary, and settings that differ from the defaults."""
        found = {"ranks": self.ranks, "special": self.special, "late": self.late}
        return {
            "vocabulary": dict(self.vocabulary), **{name: value for name, value in found.items() if value},
            **({} if self.merges is None else {"merges": list(map(list, self.merges))}),
            **({} if self.prefix == "each" else {"prefix": self.prefix}),
        }  # fmt: skip

    def symbols(self) -> dict[str, int]:
        """Return the ids of all pieces and special tokens."""
        return {**self.vocabulary, **self.special}

    def with_special(self, texts: Collection[str]) -> SentencePieceTokenizer:
        """Return the tokenizer with these texts as special tokens, if they are pieces."""
        more = {text: self.vocabulary[text] for text in texts if text in self.vocabulary and text not in self.special}
        if not more:
            return self
        special = {**self.special, **more}
        vocabulary = {**ordinary(self.vocabulary, self.merges or (), special), **_bytes_of(self.vocabulary)}
        return SentencePieceTokenizer(
            vocabulary, self.merges, ranks=self.ranks, special=special, late=self.late, prefix=self.prefix
        ).using(self.conventions)

    def using(self, conventions: Conventions) -> Self:
        """Return the same tokenizer with other conventions; in shown tokens, ▁ decodes to a space."""
        found = super().using(conventions)
        shown = {i: text.replace(SPACE, " ") for text, i in self.special.items() if i in conventions.shown}
        found.token_bytes = {**self.token_bytes, **{token: encoded(text) for token, text in shown.items()}}
        return found

    def listed_merges(self) -> list[tuple[str, str]]:
        """Return the merges; for ranks, all that make each piece, in transformers' order: by the ids of the parts.

        Raises DataError if a piece has a character that is not a piece.
        """
        if self.merges is not None:
            return self.merges
        if self.lacking:
            raise DataError(f"no piece is the character {next(iter(self.lacking.values()))!r}, which others contain.")
        pieces = {token: piece for piece, token in self.vocabulary.items()}
        ordered = sorted((rank, token, pair) for pair, (rank, token) in self.pairs.items())
        return [(pieces[left], pieces[right]) for _, _, (left, right) in ordered]

    def scores(self) -> dict[int, float]:
        """Return each piece's score: minus its rank, 0 for bytes and special tokens. The best are merged first."""
        found = dict.fromkeys(self.token_bytes, 0.0)
        ranks = {token: token for piece, token in self.vocabulary.items() if not BYTE.fullmatch(piece)}
        best = dict[int, int]()
        for rank, token in self.pairs.values():
            best[token] = min(rank, best.get(token, rank))
        return found | {token: -float(best.get(token, rank)) for token, rank in ranks.items()}

    def encode_blocks(self, blocks: Iterable[bytes]) -> Iterator[list[int]]:
        """Yield the ids of a text that comes in blocks."""
        for found in self._sections.words(blocks):
            yield [token for word, special in found for token in self._ids(word, special)]

    def encode_plain(self, text: str, shown: Table, first: bool = True) -> list[int]:
        """Return the ids of a section, in which only `late` special tokens are matched."""
        found = self._sections.section(text, True, first)
        return [i for word, special in found for i in self._ids(word if special else word.translate(shown), special)]

    def _ids(self, word: str, special: bool) -> list[int]:
        if special:
            return [self.special[word]]
        if (found := self._words.get(word)) is None:
            if len(self._words) >= KEPT:
                self._words.clear()
            ids = [token for sign in word for token in self._of_sign(sign)]
            found = self._words[word] = [i for token in merged(ids, self.pairs) for i in self._real(token)]
        return found

    def _of_sign(self, sign: str) -> list[int]:
        token = self.first.get(sign)
        return [self.byte_ids[byte] for byte in utf8(sign)] if token is None else [token]

    def _real(self, token: int) -> list[int]:
        return [token] if token < LARGEST else [self.byte_ids[byte] for byte in utf8(self.lacking[token])]

    def decode(self, tokens: Iterable[int], after: int | None = None) -> bytes:
        """Return the bytes of ids without the spaces that encoding added. DataError if an id has none."""
        tokens = list(tokens)
        super().decode(tokens)  # raises for invalid ids
        before = np.array([-1 if after is None else after, *tokens[:-1]], np.int64)
        bare = self._bare(np.asarray(tokens, np.int64), before[: len(tokens)]).tolist()
        return b"".join(self.token_bytes[i][gone:] for i, gone in zip(tokens, bare, strict=True))

    def count_bytes(self, tokens: np.ndarray, before: np.ndarray | None = None) -> int:
        """Return the number of a text's bytes that a vector of ids stands for, without added spaces."""
        before = np.concatenate([[-1], tokens[:-1]])[: tokens.size] if before is None else before
        return super().count_bytes(tokens) - int(self._bare(tokens, before).sum())

    def _bare(self, tokens: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return booleans (N,): whether encoding added a token's first space; -1 precedes a text."""
        return self._begins[before] & self._spaced[tokens]

    @cached_property
    def _begins(self) -> np.ndarray:
        """Booleans (V + 1,): whether a section with a ▁ begins after each id, and at the beginning of a text."""
        found = np.zeros(self.vocab_size + 1, bool)
        found[-1] = self.prefix != "none"
        if self.prefix in ("each", "words"):
            found[sorted(self.special_ids)] = True
        found[[*self.conventions.before]] = self.prefix != "none"
        return found

    @cached_property
    def _spaced(self) -> np.ndarray:
        found = np.zeros(self.vocab_size, bool)
        found[[i for i, content in self.token_bytes.items() if content.startswith(b" ")]] = True
        return found

    @property
    def end(self) -> int:
        """The id of the token that ends a document."""
        return self.byte_ids[END[0]] if self.end_text == END else super().end


def _bytes_of(vocabulary: Mapping[str, int]) -> dict[str, int]:
    return {piece: token for piece, token in vocabulary.items() if BYTE.fullmatch(piece)}


def _byte_ids(vocabulary: Mapping[str, int]) -> list[int]:
    """Return the id of each byte. DataError if a byte has none."""
    found = [vocabulary.get(f"<0x{byte:02X}>") for byte in range(256)]
    if None in found:
        raise DataError(f"its vocabulary has no token for the byte <0x{found.index(None):02X}>")
    return [token for token in found if token is not None]
