"""Arrays in files that other programs wrote, read one at a time within bounds, and their number types.

A reader states each array's type, shape and place first; nothing is allocated before these agree with the size.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

import numpy as np

from byhand.errors import DataError, reason
from byhand.files.reading import open_regular


@dataclass(frozen=True)
class NumberType:
    """A type of numbers in files.

    size    bytes of a block
    unpack  makes float32 numbers (N, block) of blocks, uint8 (N, size); None: they are no real numbers
    block   how many numbers a block has
    """

    name: str
    size: int
    unpack: Callable[[np.ndarray], np.ndarray] | None = None
    block: int = 1

    def floats(self, content: np.ndarray) -> np.ndarray:
        """Return bytes, uint8 (N,), as float32 numbers in one row; what is beyond its range becomes infinite."""
        assert self.unpack is not None, self.name
        with np.errstate(all="ignore"):
            return self.unpack(content.reshape(-1, self.size)).reshape(-1)


def _plain(name: str, dtype: str) -> NumberType:
    kind = np.dtype(dtype)
    return NumberType(name, kind.itemsize, lambda blocks: blocks.view(kind).astype(np.float32, copy=False))


def _bfloat16(blocks: np.ndarray) -> np.ndarray:
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


NUMBER_TYPES = {  # by their names in safetensors files
    kind.name: kind
    for kind in (
        _plain("F64", "<f8"),
        _plain("F32", "<f4"),
        _plain("F16", "<f2"),
        NumberType("BF16", 2, _bfloat16),
        *(NumberType(name, 1) for name in ("F8_E4M3", "F8_E5M2", "BOOL", "I8", "U8")),
        *(NumberType(f"{sign}{bits}", bits // 8) for sign in "IU" for bits in (16, 32, 64)),
    )
}


@dataclass(frozen=True)
class Stored:
    """One array in a file: its number type, its shape, and its first byte."""

    kind: NumberType
    shape: tuple[int, ...]
    begin: int

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return math.prod(self.shape) // self.kind.block * self.kind.size


class OpenFile:
    """A regular file that another program wrote; every error is a DataError that names it.

    raw   the open file, unbuffered
    size  bytes
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.raw = os.fdopen(open_regular(path), "rb", buffering=0)
            self.stamp = _stamp(self.raw.fileno())
            self.size = self.stamp[1]
        except OSError as error:
            raise DataError(f"cannot read {path}: {reason(error)}. Check the path and its permissions.") from None

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        stamp = _stamp(self.raw.fileno())
        self.raw.close()
        if kind is None and stamp != self.stamp:
            raise self.damaged("it changed while it was read")

    def read(self, begin: int, size: int) -> np.ndarray:
        """Return bytes, uint8 (size,); they must lie in the file."""
        if not 0 <= begin <= begin + size <= self.size:
            raise self.damaged(f"it ends at byte {self.size:,}, within what it should hold")
        try:
            self.raw.seek(begin)
            content = read_array(self.raw, size)
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {reason(error)}. Check its disk.") from None
        if len(content) != size:
            raise self.damaged("it changed while it was read")
        return content

    def floats(self, stored: Stored, name: str) -> np.ndarray:
        """Return an array of finite numbers in float32."""
        array = stored.kind.floats(self.read(stored.begin, stored.size)).reshape(stored.shape)
        if not np.isfinite(array).all():
            raise self.damaged(f"{name[:80]} holds NaN or infinity")
        return array

    def damaged(self, what: str) -> DataError:
        """Return the error for a file that is not what it should be."""
        return DataError(f"{self.path} is damaged: {what}. Use another copy.")


def read_array(file: RawIOBase, size: int) -> np.ndarray:
    """Return the next `size` bytes of an unbuffered file, uint8 (size,); fewer where it ends."""
    content, done = np.empty(size, np.uint8), 0
    while got := file.readinto(content.data[done : done + (1 << 30)]):
        done += got
    return content[:done]


def _stamp(descriptor: int) -> tuple[int, int, int]:
    """Return a file's inode, size and time of change: another file, or a changed one, has others."""
    facts = os.fstat(descriptor)
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
