"""One token for each byte: id 0 to 255 is the byte itself, text is UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from byhand.errors import DataError
from byhand.tokenizers.tokenizer import Tokenizer


class ByteTokenizer(Tokenizer):
    """Text as its bytes. Any vocabulary with the bytes of the text will do."""

    kind = "byte"
    unit = "byte"

    def __init__(self) -> None:
        super().__init__({byte: bytes([byte]) for byte in range(256)})
        self.dtype = np.dtype(np.uint8)

    def encode_blocks(self, blocks: Iterable[bytes]) -> Iterator[np.ndarray]:
        """Yield the blocks themselves, as arrays of the same memory."""
        return (np.frombuffer(block, np.uint8) for block in blocks)

    def decode(self, tokens: Iterable[int], after: int | None = None) -> bytes:
        """Return the bytes of ids. DataError if an id is not a byte."""
        try:
            return bytes(tokens)
        except ValueError:
            raise DataError("the ids hold a token that is not a byte. Byte tokens go from 0 to 255.") from None

    def count_bytes(self, tokens: np.ndarray, before: np.ndarray | None = None) -> int:
        """Return the number of ids."""
        return tokens.size

    def require_vocabulary(self, vocab_size: int) -> None:
        """Accept every vocabulary; the corpus checks its text's bytes."""

    def as_json(self) -> dict[str, Any]:
        """Return nothing: a byte tokenizer has no settings."""
        return {}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ByteTokenizer:
        """Return the only one."""
        return BYTES


BYTES = ByteTokenizer()
