"""Arrays in files that other programs wrote, read one at a time within bounds, and the number types of them.

A reader states each array's type, shape and place first; nothing is allocated before these agree with the size.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from byhand.errors import DataError, reason
from byhand.files.reading import open_regular, read_array

MOST_AXES = 8
FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # bfloat16: the first half of a float32
SIZES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "BOOL": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """One array in a file: its type, its shape, its first byte, and how many bytes it has."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    size: int


class OpenFile:
    """A regular file that another program wrote; every error is a DataError that names it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.fdopen(open_regular(path), "rb", buffering=0)
            self.stamp = _stamp(self._file.fileno())
            self.size = self.stamp[1]
        except OSError as error:
            raise DataError(f"cannot read {path}: {reason(error)}. Check the path and its permissions.") from None

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        stamp = _stamp(self._file.fileno())
        self._file.close()
        if kind is None and stamp != self.stamp:
            raise self.damaged("it changed while it was read")

    def read(self, begin: int, size: int) -> np.ndarray:
        """Return bytes, uint8 (size,); they must lie in the file."""
        if not 0 <= begin <= begin + size <= self.size:
            raise self.damaged(f"it ends at byte {self.size:,}, within what it should hold")
        try:
            self._file.seek(begin)
            content = read_array(self._file, size)
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {reason(error)}. Check its disk.") from None
        if len(content) != size:
            raise self.damaged("it changed while it was read")
        return content

    def floats(self, stored: Stored, name: str) -> np.ndarray:
        """Return an array of finite numbers in float32."""
        return self.finite(float32(self.read(stored.begin, stored.size), stored.dtype).reshape(stored.shape), name)

    def finite(self, array: np.ndarray, name: str) -> np.ndarray:
        """Return an array; DataError if it holds NaN or infinity."""
        if not np.isfinite(array).all():
            raise self.damaged(f"{name[:80]} holds NaN or infinity")
        return array

    def damaged(self, what: str) -> DataError:
        """Return the error for a file that is not what it should be."""
        return DataError(f"{self.path} is damaged: {what}. Use another copy.")


def _stamp(descriptor: int) -> tuple[int, int, int]:
    """Return what tells a file from another one, and from itself after a change: inode, size, time of change."""
    facts = os.fstat(descriptor)
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def elements(shape: object) -> int | None:
    """Return how many numbers an array of this shape has; None if it is no shape of an array in a file."""
    if not isinstance(shape, (list, tuple)) or len(shape) > MOST_AXES:
        return None
    if not all(type(n) is int and 0 <= n < 1 << 48 for n in shape):
        return None
    return math.prod(shape)


def float32(content: np.ndarray, dtype: str) -> np.ndarray:
    """Return bytes of F64, F32, F16 or BF16 numbers as float32; what is beyond its range becomes infinite."""
    numbers = content.view(FLOATS[dtype])
    if dtype == "BF16":
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32, copy=False)
