"""The bytes or tokens of a text on disk: small files are read once, large ones piece by piece.

The file is not mapped: truncating a mapped file kills its reader with SIGBUS. Every read checks the file's size and
times, so bytes of a changed text are never returned. The status-change time also reveals a modification time that was
set back; Windows has no such time, so such a change of a large text goes unnoticed there.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from byhand.errors import DataError, reason
from byhand.files.reading import open_regular
from byhand.files.user_cache import require_own

BYTE = np.dtype(np.uint8)
BLOCK = 1 << 20
IN_MEMORY = 1 << 26  # tokens of a file kept in memory: indexing costs half as much as reading each window


class TextFile:
    """Bytes (N,) of a file, or of a part of it; with another dtype, integers of that type.

    It has `len`, slices without a step (arrays), `rows` and `part`.

    descriptor  of the open file if it has no path; it is closed with the last reference. `path` only names it then

    Raises DataError if the file cannot be read, is empty, or changed since it was opened.
    """

    def __init__(self, path: Path, dtype: np.dtype = BYTE, descriptor: int | None = None) -> None:
        try:
            descriptor = open_regular(path) if descriptor is None else descriptor
        except OSError as error:
            raise DataError(_refusal(path, error)) from None
        weakref.finalize(self, os.close, descriptor)
        self.path = path
        self.dtype = dtype
        self._descriptor = descriptor
        self._content: np.ndarray | None = None
        self._facts = self._now()
        self._read = _reader(descriptor)
        self._whole: TextFile | None = None  # of a part: it keeps the descriptor open
        self._begin, self._end = 0, self._facts[0] // self.dtype.itemsize
        if not len(self):
            raise DataError(f"{path} is empty. Use a file with some text in it.")
        if len(self) <= IN_MEMORY:
            self._content = self[:]

    def __len__(self) -> int:
        return self._end - self._begin

    def __getitem__(self, part: slice) -> np.ndarray:
        begin, end, step = part.indices(len(self))
        if step != 1:
            raise IndexError("a text on disk has no slices with a step")
        if self._content is not None:
            self._require_unchanged()
            return self._content[self._begin + begin : self._begin + max(begin, end)]
        return self.rows(np.array([begin]), max(0, end - begin))[0]

    def part(self, begin: int, end: int) -> TextFile:
        """Return the part from begin to end, of the same open file."""
        found = object.__new__(TextFile)
        found.__dict__ = {**self.__dict__, "_begin": self._begin + begin, "_end": self._begin + end}
        found._whole = self._whole or self
        return found

    def rows(self, starts: np.ndarray, length: int) -> np.ndarray:
        """Return (B, length): the bytes or tokens from each of B starts on."""
        if self._content is not None:
            self._require_unchanged()
            return self._content[(starts + self._begin)[:, None] + np.arange(length)]
        read, begin, size = self._read, self._begin, self.dtype.itemsize
        try:
            joined = b"".join([read(length * size, (begin + start) * size) for start in starts.tolist()])
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {reason(error)}. Restore it.") from None
        self._require_unchanged()
        if len(joined) != len(starts) * length * size:
            raise self._changed()
        return np.frombuffer(joined, self.dtype).reshape(len(starts), length)

    def require_own(self) -> None:
        """Raise PermissionError if another user could have written the open file."""
        require_own(os.fstat(self._descriptor), self.path)

    def require_in_place(self) -> None:
        """Raise DataError if the file changed, or if its path no longer leads to it."""
        try:
            there = os.stat(self.path)
        except OSError:
            raise DataError(f"{self.path} is gone while it is in use. Restore it.") from None
        if not os.path.samestat(there, os.fstat(self._descriptor)):
            raise self._changed()
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        known, now = self._facts, self._now()
        # Content in memory stays as it was read: ignore a new mode or a second hard link.
        if now != known and (self._content is None or now[:2] != known[:2]):
            raise self._changed()

    def _now(self) -> tuple[int, int, int]:
        """Return the size, and the times of the last change of the content and of the status."""
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns, 0 if os.name == "nt" else status.st_ctime_ns

    def _changed(self) -> DataError:
        now = os.fstat(self._descriptor).st_size
        sizes = f": it had {self._facts[0]:,} bytes and has {now:,} now" if now != self._facts[0] else ""
        return DataError(f"{self.path} changed while it was in use{sizes}. Restore it, or start anew.")


def blocks(content: np.ndarray | TextFile, begin: int = 0) -> Iterator[np.ndarray]:
    """Yield the content from `begin` on in order, contiguous arrays of a million bytes or tokens."""
    return (np.ascontiguousarray(content[i : i + BLOCK]) for i in range(begin, len(content), BLOCK))


def _refusal(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return f"cannot read {path}: it is a folder. Name a file."
    if error.strerror == "it is not a regular file":
        return f"{path} is not a regular file. Pipe it in, and name - in its place."
    return f"cannot read {path}: {reason(error)}. Check the path and its permissions."


def _reader(descriptor: int) -> Callable[[int, int], bytes]:
    """Return a function of (length, offset) that reads at most to the end of the file."""
    if hasattr(os, "pread"):

        def read(length: int, offset: int) -> bytes:
            found = os.pread(descriptor, length, offset)
            while len(found) < length and (more := os.pread(descriptor, length - len(found), offset + len(found))):
                found += more
            return found

        return read
    lock = threading.Lock()  # Windows has one position for all readers

    def seek_and_read(length: int, offset: int) -> bytes:
        with lock, os.fdopen(descriptor, "rb", closefd=False) as file:
            file.seek(offset)
            return file.read(length)

    return seek_and_read
