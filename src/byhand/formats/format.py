"""A number format as a record, and the table of registered formats.

Files, kernels and settings have their own strings or numbers for a format; `codes` has these names, and `called`
looks them up. Nothing else lists the formats.
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
    """A number format.

    name      in settings
    symbol    in files
    size      bytes per block
    block     numbers per block
    unpack    blocks, uint8 (N, size) -> float32 (N, block); None: not real numbers
    pack      float32 (N, block) -> blocks, uint8 (N, size); None: read-only format
    largest   the largest number that can be packed
    error     bound on the rounding error of packing
    codes     names elsewhere: "safetensors", "gguf" (a tensor's type), "gguf file", "torch", "llm.c"
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
        """Whether NumPy can compute in it."""
        return self.name in NATIVE

    @property
    def bits(self) -> float:
        """Bits per number, including its share of the block's scales."""
        return 8 * self.size / self.block

    def words(self, count: int) -> int:
        """Return the number of 32-bit words for `count` numbers."""
        return -(-count * self.size // (4 * self.block))

    def word(self, number: int) -> int:
        """Return the index of the 32-bit word that contains a number."""
        return number * self.size // (4 * self.block)

    def bytes(self, count: int) -> int:
        """Return the bytes for `count` numbers, in whole blocks."""
        return count // self.block * self.size

    def packed(self, x: np.ndarray) -> np.ndarray:
        """Return float32 numbers as bytes, uint8 (N,); requires whole blocks and no number above `largest`."""
        assert self.pack is not None, self.name
        return self.pack(np.ascontiguousarray(x, np.float32).reshape(-1, self.block)).reshape(-1)

    def floats(self, content: np.ndarray) -> np.ndarray:
        """Return bytes, uint8 (N,), as a float32 vector; overflow becomes infinite."""
        assert self.unpack is not None, self.name
        with np.errstate(all="ignore"):
            return self.unpack(content.reshape(-1, self.size)).reshape(-1)

    def rounded(self, x: np.ndarray, axis: int = -1) -> np.ndarray:
        """Round numbers to this format: pack and unpack them. NaN stays NaN.

        axis  of the blocks; the last block is padded with zeros
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
    """Add a format to the table; ValueError if the name is taken."""
    if made.name in FORMATS:
        raise ValueError(f"two formats {made.name}")
    FORMATS[made.name] = made
    return made


def called(where: str) -> dict[str | int, Format]:
    """Return the formats of a kind of file, by its own names for them."""
    return {each.codes[where]: each for each in FORMATS.values() if where in each.codes}
