"""A corpus: the tokens of a text, the tokenizer that made them, and the windows that training and evaluation read.

A file stays on disk (`TextFile`), so that its size does not matter. A generator seeded with (seed, number of the
batch) draws each batch, so an interruption does not change which batch comes next.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from byhand.corpus.text_file import BYTE, TextFile, blocks
from byhand.errors import DataError
from byhand.quantities import counted
from byhand.tokenizers.byte import BYTES, ByteTokenizer
from byhand.tokenizers.tokenizer import Tokenizer, beyond

BATCHES = 0xDA7A  # separates the random numbers of batches from those of parameters
SHORTEST = 16  # tokens; shorter rows are padded to it


class Integers(Protocol):
    """A generator of window starts: NumPy's, or the original program's."""

    def integers(self, low: int, high: int, size: int) -> Any:
        """Return `size` integers in [low, high)."""
        ...


class Corpus:
    """Token ids (N,), and windows of them with targets shifted by one.

    tokens     an array of integers or a file, so that `tokens[a:b]` is an array; bytes are encoded at once
    tokenizer  made the tokens and knows how many bytes each stands for
    name       of the text, in errors
    training   ends of documents before those for validation; 0: validation is the end of the text
    encoded    if decoding does not return the text: counts the bytes that were encoded; with `training` two
               functions, for the documents before and after

    Raises DataError if the tokens are neither bytes nor a vector of integers; models refuse ids they lack.
    """

    def __init__(
        self,
        tokens: np.ndarray | bytes | TextFile,
        tokenizer: Tokenizer = BYTES,
        name: str = "the text",
        training: int = 0,
        encoded: Sequence[Callable[[], int]] = (),
    ) -> None:
        self.tokenizer = tokenizer
        self.name = name
        self.training = training
        self._encoded, self._whole = encoded, self
        if isinstance(tokens, bytes):
            tokens = tokenizer.array([tokens])
        self.tokens: np.ndarray | TextFile = tokens if isinstance(tokens, TextFile) else _vector(tokens, name)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def unit(self) -> str:
        """The unit of a token: "byte" or "token"."""
        return self.tokenizer.unit

    def count_bytes(self, begin: int = 0) -> int:
        """Return how many bytes of the text the tokens from `begin` on stand for (`Tokenizer.count_bytes`)."""
        if isinstance(self.tokenizer, ByteTokenizer):
            return len(self) - begin
        found = self._decoded(begin)
        return self._bytes - (self._decoded(0) - found) if self._encoded else round(found * self.stretch)

    def bytes_of(self, tokens: np.ndarray, targets: np.ndarray) -> float:
        """Return how many bytes of the text the targets other than -1 stand for, each after its token."""
        kept = targets >= 0
        return self.tokenizer.count_bytes(targets[kept], tokens[kept]) * self.stretch

    @cached_property
    def stretch(self) -> float:
        """Bytes of the text per byte that its tokens decode to: 1 unless the tokenizer changes texts."""
        if not self._encoded:
            return 1.0 if self._whole is self else self._whole.stretch
        return self._bytes / max(1, self._decoded(0))

    @cached_property
    def _bytes(self) -> int:
        """The number of bytes that were encoded, without those of special tokens."""
        special = sum(map(self.tokenizer.count_special, blocks(self.tokens)))
        return sum(count() for count in self._encoded) - special

    def _decoded(self, begin: int) -> int:
        """Return how many bytes the tokens from `begin` on decode to, special tokens to none."""
        count, after = 0, int(self.tokens[begin - 1 : begin][0]) if begin else -1
        for block in blocks(self.tokens, begin):
            count += self.tokenizer.count_bytes(block, np.concatenate([[after], block[:-1]]))
            after = int(block[-1])
        return count

    def sample_batch(
        self, batch_size: int, seq_len: int, rng: Integers, rows: slice | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, targets), each int64 (B, T), from windows that start anywhere with equal probability.

        rows  the rows to read if several hosts share the batch; the others are 0. All hosts draw the same starts
        """
        self.require(seq_len)
        starts = rng.integers(0, len(self) - seq_len, size=batch_size)
        if rows is None or rows == slice(0, batch_size):
            return self._windows(starts, seq_len)
        read = np.zeros((batch_size, seq_len + 1), np.int64)
        read[rows] = self.rows(starts[rows], seq_len + 1)
        return read[:, :-1], read[:, 1:]

    def spread_windows(self, count: int, seq_len: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, targets) of at most `count` fixed windows, spread evenly from the first to the last.

        At most as many as predict every token once: more would measure some tokens again.
        """
        self.require(seq_len)
        count = min(count, math.ceil((len(self) - 1) / seq_len))
        starts = np.unique(np.linspace(0, len(self) - seq_len - 1, count).astype(np.int64))
        return self._windows(starts, seq_len)

    def split(self, val_fraction: float, seq_len: int) -> tuple[Self, Self]:
        """Return (training, validation): the first part of the text and the last.

        Windows may span documents: the end token between them is learnt like any other.
        """
        cut = self._after(self.training) if self.training else len(self) - round(len(self) * val_fraction)
        train = self._part(0, cut, f"the training part of {self.name}")
        val = self._part(cut, len(self), f"the validation part of {self.name}")
        if self.training:
            train._encoded, val._encoded = self._encoded[:1], self._encoded[1:]
        min(train, val, key=len).require(seq_len)
        return train, val

    def require(self, seq_len: int) -> None:
        """Raise DataError unless one window and its targets fit."""
        if len(self) < seq_len + 1:
            fits = 2 ** int(math.log2(len(self) - 1)) if len(self) > 1 else 0
            advice = f"Use a longer text or --seq-len {fits}." if fits else "Use a longer text."
            raise DataError(
                f"{self.name} holds {counted(len(self), self.unit)}, but seq_len {seq_len} needs at least "
                f"{seq_len + 1:,}. {advice}"
            )

    def require_vocabulary(self, vocab_size: int) -> None:
        """Raise DataError unless the vocabulary is the tokenizer's, and every token one of its ids."""
        self.tokenizer.require_vocabulary(vocab_size)
        if isinstance(self.tokens, TextFile) and self.tokens.dtype == BYTE and vocab_size > 255:
            return  # every byte is an id: no need to read the file
        bad = next((id_ for block in blocks(self.tokens) if (id_ := beyond(block, vocab_size)) is not None), None)
        if bad is not None:
            use = " Use --vocab-size 256." if isinstance(self.tokenizer, ByteTokenizer) else ""
            raise DataError(
                f"{self.name} holds the {self.unit} {bad}, but vocab_size {vocab_size} has ids 0 to "
                f"{vocab_size - 1}.{use}"
            )

    def rows(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Return int64 (B, length): the tokens from each of B starts on."""
        if isinstance(self.tokens, TextFile):
            return self.tokens.rows(starts, length).astype(np.int64)
        return self.tokens[np.asarray(starts, dtype=np.int64)[:, None] + np.arange(length)].astype(np.int64)

    def _after(self, documents: int) -> int:
        """Return where the tokens of so many documents end."""
        begin = 0
        for block in blocks(self.tokens):
            ends = np.flatnonzero(block == self.tokenizer.end)
            if documents <= len(ends):
                return begin + int(ends[documents - 1]) + 1
            documents, begin = documents - len(ends), begin + len(block)
        raise DataError(f"{self.name} has fewer documents than its record says. Restore it, or start anew.")

    def _windows(self, starts: np.ndarray, seq_len: int) -> tuple[np.ndarray, np.ndarray]:
        rows = self.rows(starts, seq_len + 1)
        return rows[:, :-1], rows[:, 1:]

    def _part(self, begin: int, end: int, name: str) -> Self:
        tokens = self.tokens
        part = copy.copy(self)
        part._encoded = ()
        for cached in ("_bytes", "stretch"):
            vars(part).pop(cached, None)
        part.tokens = tokens.part(begin, end) if isinstance(tokens, TextFile) else tokens[begin:end]
        part.name = name
        return part


class ByteDataset(Corpus):
    """A corpus whose tokens are bytes."""

    def __init__(self, tokens: np.ndarray | bytes | TextFile, name: str = "the text") -> None:
        super().__init__(tokens, BYTES, name)


def _vector(tokens: Any, name: str) -> np.ndarray:
    """Return tokens as an array (N,); DataError if they are none."""
    try:
        array = np.asarray(tokens)
    except ValueError:
        raise DataError(
            f"{name} must be bytes or an array (N,) of integers, not rows of different lengths."
        ) from None
    if array.ndim != 1 or array.dtype.kind not in "iu":
        found = array.dtype if array.dtype.kind not in "iu" else f"one of the shape {array.shape}"
        raise DataError(f"{name} must be bytes or an array (N,) of integers, not {found}.")
    return array


def batch_generator(seed: int, number: int) -> np.random.Generator:
    """Return the generator that draws batch `number` of a run, the same on every call."""
    return np.random.default_rng([seed, BATCHES, number])


def padded(length: int, most: int) -> int:
    """Return the padded length of a row: four lengths per power of two, so that few shapes serve all."""
    step = max(SHORTEST, (1 << (length - 1).bit_length()) // 8)
    return min(most, -(-max(1, length) // step) * step)


def bits_per_byte(nats_per_token: float, bytes_per_token: float) -> float:
    """Convert a mean loss to bits per byte."""
    return nats_per_token / (bytes_per_token * math.log(2))
