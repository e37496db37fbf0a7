"""Bytes to batches: a text as one array of byte tokens, and the windows that training and evaluation read.

A text on disk is memory-mapped, so that its size does not matter. The batch of every update is drawn by a generator
that is seeded with (seed, number of the batch): where a run was interrupted cannot change what it reads next.
"""

from __future__ import annotations

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

    tokens  an array of uint8, memory-mapped or not
    name    what errors call this text
    """

    def __init__(self, tokens: np.ndarray, name: str = "the text") -> None:
        self.tokens = tokens
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
        for part in (train, val):
            part.require(seq_len)
        return train, val

    def require(self, seq_len: int) -> None:
        """Raise DataError unless one window and its targets fit."""
        if len(self) < seq_len + 1:
            fits = f"--seq-len {len(self) // 2}" if len(self) >= 4 else "another text"
            raise DataError(
                f"{self.name} holds {len(self)} bytes, but seq_len {seq_len} needs at least {seq_len + 1}. "
                f"Use a longer text or {fits}."
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
        if path.stat().st_size == 0:
            raise DataError(f"{path} is empty. Use a file with some text in it.")
        return np.memmap(path, dtype=np.uint8, mode="r")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}. Check the path and its permissions.") from None
