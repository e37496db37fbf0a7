"""One number format as a record, and the table of those that are registered.

A file, a kernel or a setting names a format by a string or a number of its own; `codes` has these names, and `called`
looks them up. Nothing else says which formats there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from byhand.formats.names import NATIVE

Blocks = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ErrorBound:
    """A bound on the rounding error of packing x: relative |x| + of_block max |block| + absolute."""

    relative: float = 0.0
    of_block: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Format:
    """A format of numbers.

    name      as settings say it
    symbol    as files say it
    size      bytes of a block
    block     how many numbers a block has
    unpack    float32 (N, block) of blocks, uint8 (N, size); None: they are no real numbers
    pack      blocks, uint8 (N, size), of float32 (N, block); None: this format is only read
    largest   the largest number that can be packed
    error     bound on the rounding error of packing
    codes     what others call it: "safetensors", "gguf" (a tensor's type), "gguf file", "torch", "llm.c"
    """

    name: str
    symbol: str
    size: int
    block: int = 1
    unpack: Blocks | None = None
    pack: Blocks | None = None
    largest: float = float("inf")
    error: ErrorBound = field(default_factory=ErrorBound)
    codes: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def native(self) -> bool:
        """Whether NumPy computes in it."""
        return self.name in NATIVE

    @property
    def bits(self) -> float:
        """Bits of a number, with its share of what its block has in common."""
        return 8 * self.size / self.block

    def words(self, count: int) -> int:
        """Return how many 32-bit words hold so many numbers."""
        return -(-count * self.size // (4 * self.block))

    def word(self, number: int) -> int:
        """Return the 32-bit word that a number lies in."""
        return number * self.size // (4 * self.block)

    def bytes(self, count: int) -> int:
        """Return how many bytes hold so many numbers, whole blocks of them."""
        return count // self.block * self.size

    def packed(self, x: np.ndarray) -> np.ndarray:
        """Return float32 numbers as bytes, uint8 (N,): whole blocks, and no number above `largest`."""
        assert self.pack is not None, self.name
        return self.pack(np.ascontiguousarray(x, np.float32).reshape(-1, self.block)).reshape(-1)

    def floats(self, content: np.ndarray) -> np.ndarray:
        """Return bytes, uint8 (N,), as a vector of float32; overflow becomes infinite."""
        assert self.unpack is not None, self.name
        with np.errstate(all="ignore"):
            return self.unpack(content.reshape(-1, self.size)).reshape(-1)

    def rounded(self, x: np.ndarray, axis: int = -1) -> np.ndarray:
        """Return numbers of this format as an array of theirs: packed and unpacked again. NaN stays NaN.

        axis  along which blocks lie; zeros complete the last one
        """
        if self.native:
            return x
        if self.block == 1:
            return self.floats(self.packed(x)).reshape(np.shape(x))
        rows = np.moveaxis(x, axis, -1)
        more = [(0, 0)] * (x.ndim - 1) + [(0, -rows.shape[-1] % self.block)]
        padded = np.pad(rows, more)
        found = self.floats(self.packed(padded)).reshape(padded.shape)
        return np.moveaxis(found[..., : rows.shape[-1]], -1, axis)

    def bound(self, x: np.ndarray) -> np.ndarray:
        """Return a bound on the rounding error of packing, for each number of whole blocks."""
        size = np.abs(np.asarray(x, np.float64)).reshape(-1, self.block)
        most = (
            self.error.relative * size + self.error.of_block * size.max(axis=1, keepdims=True) + self.error.absolute
        )
        return most.reshape(np.shape(x))


FORMATS: dict[str, Format] = {}


def register(made: Format) -> Format:
    """Add a format to the table; ValueError if there is one of this name."""
    if made.name in FORMATS:
        raise ValueError(f"two formats {made.name}")
    FORMATS[made.name] = made
    return made


def called(where: str) -> dict[str | int, Format]:
    """Return the formats that a kind of file knows, by its own names of them."""
    return {each.codes[where]: each for each in FORMATS.values() if where in each.codes}
