"""Bytes to batches: a text as one array of byte tokens, and the windows that training and evaluation read.

A text on disk is memory-mapped, so that its size does not matter. The batch of every update is drawn by a generator
that is seeded with (seed, number of the batch): where a run was interrupted cannot change what it reads next.
"""

from __future__ import annotations

import math
import stat
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from byhand.errors import DataError

BATCHES = 0xDA7A  # keeps the generator of batches apart from that of parameters


class Integers(Protocol):
    """What draws window starts: NumPy's Generator, or the seed program's."""

    def integers(self, low: int, high: int, size: int) -> Any:
        """Return `size` integers in [low, high)."""
        ...


class ByteDataset:
    """Byte tokens (N,), and windows of them with targets shifted by one.

    tokens  an array of uint8, memory-mapped or not, or bytes
    name    what errors call this text
    """

    def __init__(self, tokens: np.ndarray | bytes, name: str = "the text") -> None:
        self.tokens = np.frombuffer(tokens, np.uint8) if isinstance(tokens, bytes) else np.asarray(tokens)
        if self.tokens.ndim != 1 or self.tokens.dtype.kind not in "iu":
            raise DataError(f"{name} must be bytes or an array (N,) of integers, not {self.tokens.dtype}.")
        self.name = name

    def __len__(self) -> int:
        return len(self.tokens)

    def sample_batch(self, batch_size: int, seq_len: int, rng: Integers) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, targets), each int64 (B, T), from windows that start anywhere with equal probability."""
        self.require(seq_len)
        return self._windows(rng.integers(0, len(self) - seq_len, size=batch_size), seq_len)

    def spread_windows(self, count: int, seq_len: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, targets) of at most `count` fixed windows, spread evenly from the first to the last."""
        self.require(seq_len)
        starts = np.unique(np.linspace(0, len(self) - seq_len - 1, count).astype(np.int64))
        return self._windows(starts, seq_len)

    def split(self, val_fraction: float, seq_len: int) -> tuple[ByteDataset, ByteDataset]:
        """Return (training, validation): the first part of the text and the last."""
        cut = len(self) - round(len(self) * val_fraction)
        train = ByteDataset(self.tokens[:cut], f"the training part of {self.name}")
        val = ByteDataset(self.tokens[cut:], f"the validation part of {self.name}")
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
        highest = int(self.tokens.max())
        if highest >= vocab_size:
            raise DataError(
                f"{self.name} holds the byte {highest}, but vocab_size {vocab_size} has ids 0 to {vocab_size - 1}. "
                f"Use --vocab-size 256."
            )

    def _windows(self, starts: np.ndarray, seq_len: int) -> tuple[np.ndarray, np.ndarray]:
        places = np.asarray(starts, dtype=np.int64)[:, None] + np.arange(seq_len + 1)
        rows = self.tokens[places].astype(np.int64)
        return rows[:, :-1], rows[:, 1:]


def batch_generator(seed: int, number: int) -> np.random.Generator:
    """Return the generator that draws batch `number` of a run, the same whenever it is asked."""
    return np.random.default_rng([seed, BATCHES, number])


def map_file(path: Path) -> np.ndarray:
    """Return a file's bytes as a read-only, memory-mapped array of uint8; DataError if it cannot be read."""
    try:
        facts = path.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise DataError(f"cannot read {path}: it is a folder. Name a file.")
        if not stat.S_ISREG(facts.st_mode):
            raise DataError(f"{path} is no regular file, so it cannot be mapped. Use --data - and pipe it in.")
        if facts.st_size == 0:
            raise DataError(f"{path} is empty. Use a file with some text in it.")
        return np.memmap(path, dtype=np.uint8, mode="r")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}. Check the path and its permissions.") from None
