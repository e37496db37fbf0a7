"""Tokenizers small enough to see through, for the tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Self

from byhand.errors import DataError
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.symbols import visible_bytes
from byhand.tokenizers.tokenizer import Tokenizer

MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("Ġ", "t"), ("hell", "o"), ("a", "a"), ("Ġt", "he"), ("o", "u")]


class PairTokenizer(Tokenizer):
    """Two bytes of an alphabet are one token; the last id, if it is special, stands for no byte."""

    kind = "pairs"

    def __init__(self, alphabet: bytes, special: bool = False) -> None:
        self.alphabet, self.marked = alphabet, special
        pairs = [bytes(pair) for pair in product(alphabet, repeat=2)]
        super().__init__(dict(enumerate([*pairs, *[b""] * special])))
        self._ids = {pair: token for token, pair in enumerate(pairs)}

    def encode_blocks(self, blocks: Iterable[bytes]) -> Iterator[list[int]]:
        text = b"".join(blocks)
        if len(text) % 2 or not {*text} <= {*self.alphabet}:
            raise DataError("the text is not made of pairs")
        yield [self._ids[text[i : i + 2]] for i in range(0, len(text), 2)]

    def as_json(self) -> dict[str, Any]:
        return {"alphabet": list(self.alphabet), "special": self.marked}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        return cls(bytes(values["alphabet"]), values["special"])


def byte_pairs() -> BytePairTokenizer:
    """Return GPT-2's kind with a few merges, which knows every byte: 265 tokens."""
    symbols = [*visible_bytes(), *map("".join, MERGES), "<|endoftext|>"]
    return BytePairTokenizer({symbol: token for token, symbol in enumerate(symbols)}, MERGES)
