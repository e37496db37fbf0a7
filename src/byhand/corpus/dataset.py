"""Bytes to batches: a text as one array of byte tokens, and the windows that training and evaluation read.

A text on disk stays there (`TextFile`), so that its size does not matter. The batch of every update is drawn by a
generator that is seeded with (seed, number of the batch): where a run was interrupted cannot change what it reads
next.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from byhand.corpus.text_file import TextFile
from byhand.errors import DataError

BATCHES = 0xDA7A  # keeps the generator of batches apart from that of parameters


class Integers(Protocol):
    """What draws window starts: NumPy's Generator, or the seed program's."""

    def integers(self, low: int, high: int, size: int) -> Any:
        """Return `size` integers in [low, high)."""
        ...


class ByteDataset:
    """Byte tokens (N,), and windows of them with targets shifted by one.

    tokens  an array of integers, bytes, or a file; whichever it is, `tokens[a:b]` is an array
    name    what errors call this text
    """

    def __init__(self, tokens: np.ndarray | bytes | TextFile, name: str = "the text") -> None:
        self.tokens: np.ndarray | TextFile
        self.name = name
        if isinstance(tokens, TextFile):
            self.tokens = tokens
            return
        self.tokens = np.frombuffer(tokens, np.uint8) if isinstance(tokens, bytes) else np.asarray(tokens)
        if self.tokens.ndim != 1 or self.tokens.dtype.kind not in "iu":
            raise DataError(f"{name} must be bytes or an array (N,) of integers, not {self.tokens.dtype}.")

    def __len__(self) -> int:
        return len(self.tokens)

    def sample_batch(self, batch_size: int, seq_len: int, rng: Integers) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, targets), each int64 (B, T), from windows that start anywhere with equal probability."""
        self.require(seq_len)
        return self._windows(rng.integers(0, len(self) - seq_len, size=batch_size), seq_len)

    def spread_windows(self, count: int, seq_len: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, targets) of at most `count` fixed windows, spread evenly from the first to the last."""
        self.require(seq_len)
        count = min(count, len(self) - seq_len)
        starts = np.unique(np.linspace(0, len(self) - seq_len - 1, count).astype(np.int64))
        return self._windows(starts, seq_len)

    def split(self, val_fraction: float, seq_len: int) -> tuple[ByteDataset, ByteDataset]:
        """Return (training, validation): the first part of the text and the last."""
        cut = len(self) - round(len(self) * val_fraction)
        train = ByteDataset(self._part(0, cut), f"the training part of {self.name}")
        val = ByteDataset(self._part(cut, len(self)), f"the validation part of {self.name}")
        min(train, val, key=len).require(seq_len)
        return train, val

    def require(self, seq_len: int) -> None:
        """Raise DataError unless one window and its targets fit."""
        if len(self) < seq_len + 1:
            fits = 2 ** int(math.log2(len(self) - 1)) if len(self) > 1 else 0
            advice = f"Use a longer text or --seq-len {fits}." if fits else "Use a longer text."
            raise DataError(
                f"{self.name} holds {len(self)} bytes, but seq_len {seq_len} needs at least {seq_len + 1}. {advice}"
            )

    def require_vocabulary(self, vocab_size: int) -> None:
        """Raise DataError unless every byte is an id of the vocabulary."""
        if isinstance(self.tokens, TextFile):
            highest = 0 if vocab_size > 255 else max(int(block.max()) for block in self.tokens.blocks())
        else:
            highest = int(self.tokens.max())
        if highest >= vocab_size:
            raise DataError(
                f"{self.name} holds the byte {highest}, but vocab_size {vocab_size} has ids 0 to {vocab_size - 1}. "
                f"Use --vocab-size 256."
            )

    def rows(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Return int64 (B, length): the tokens from each of B starts on."""
        if isinstance(self.tokens, TextFile):
            return self.tokens.rows(starts, length).astype(np.int64)
        return self.tokens[np.asarray(starts, dtype=np.int64)[:, None] + np.arange(length)].astype(np.int64)

    def _windows(self, starts: np.ndarray, seq_len: int) -> tuple[np.ndarray, np.ndarray]:
        rows = self.rows(starts, seq_len + 1)
        return rows[:, :-1], rows[:, 1:]

    def _part(self, begin: int, end: int) -> np.ndarray | TextFile:
        return self.tokens.part(begin, end) if isinstance(self.tokens, TextFile) else self.tokens[begin:end]


def batch_generator(seed: int, number: int) -> np.random.Generator:
    """Return the generator that draws batch `number` of a run, the same whenever it is asked."""
    return np.random.default_rng([seed, BATCHES, number])
