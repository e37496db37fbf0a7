"""Arrays in files of other programs, read one at a time, in pieces and within bounds.

A reader gives each array's format, shape and offset first; nothing is allocated before these agree with the size.
"""

from __future__ import annotations

import math
import mmap
import os
from dataclasses import dataclass
from hashlib import sha256
from io import FileIO
from pathlib import Path
from threading import Lock

import numpy as np

from byhand.errors import DataError, reason
from byhand.files.reading import open_regular
from byhand.formats.registry import Format

OWN_PAGES = 1 << 20  # arrays of at least these bytes get pages of their own
PIECE = 1 << 22  # bytes of a file unpacked at a time
_seeking = Lock()


@dataclass(frozen=True)
class Stored:
    """One array in a file: its number format, its shape, and its first byte."""

    kind: Format
    shape: tuple[int, ...]
    begin: int

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.kind.bytes(math.prod(self.shape))


class OpenFile:
    """A regular file that another program wrote; every error is a DataError that names it.

    raw         the open file, unbuffered
    size        bytes
    descriptor  of the file if it is open already; this object closes it
    digest      its SHA-256, if that was verified
    """

    def __init__(self, path: Path, descriptor: int | None = None, digest: str = "") -> None:
        self.path, self.digest = path, digest
        try:
            self.raw = os.fdopen(open_regular(path) if descriptor is None else descriptor, "rb", buffering=0)
            self.stamp, self._status = _stamp(self.raw.fileno())
            self.size = self.stamp[1]
        except OSError as error:
            raise DataError(f"cannot read {path}: {reason(error)}. Check the path and its permissions.") from None

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self.raw:
            if kind is None:
                self.require_unchanged()

    def require_unchanged(self) -> bool:
        """Raise DataError if another program wrote to the file since it was opened.

        For a file with a digest, also compare the status-change time, which nobody can set back. A hard link, a
        rename or a new mode changes it too: then hash the bytes. Return whether they were hashed.
        """
        stamp, status = _stamp(self.raw.fileno())
        if stamp != self.stamp:
            raise self.damaged("it changed while it was read")
        if status == self._status or not self.digest:
            return False
        found = sha256()
        for begin in range(0, self.size, PIECE):
            found.update(self.read(begin, min(PIECE, self.size - begin)).data)
        if found.hexdigest() != self.digest:
            raise self.damaged("it changed while it was read")
        self._status = status
        return True

    def read(self, begin: int, size: int) -> np.ndarray:
        """Return bytes, uint8 (size,); they must lie in the file."""
        if not 0 <= begin <= begin + size <= self.size:
            raise self.damaged(f"it ends at byte {self.size:,}, within what it should hold")
        content = own_pages(size)
        self.read_into(begin, content)
        return content

    def read_into(self, begin: int, memory: np.ndarray) -> None:
        """Fill memory, uint8 (N,), with the bytes from `begin` on; several threads may read at once."""
        try:
            got = read_at(self.raw, begin, memory)
        except OSError as error:
            raise DataError(f"cannot read {self.path}: {reason(error)}. Check its disk.") from None
        if got != memory.size:
            raise self.damaged("it changed while it was read")

    def floats(self, stored: Stored, name: str) -> np.ndarray:
        """Return an array of finite numbers in float32; besides it, memory holds one piece of the file."""
        if stored.begin + stored.size > self.size:
            raise self.damaged(f"it ends at byte {self.size:,}, within what it should hold")
        kind, count = stored.kind, math.prod(stored.shape)
        array, step = np.empty(count, np.float32), PIECE // (kind.size * kind.block) * kind.block
        for begin in range(0, count, step):
            numbers = min(step, count - begin)
            piece = kind.floats(self.read(stored.begin + kind.bytes(begin), kind.bytes(numbers)))
            if not np.isfinite(piece).all():
                raise self.damaged(f"{name[:80]} holds NaN or infinity")
            array[begin : begin + numbers] = piece
        return array.reshape(stored.shape)

    def damaged(self, what: str) -> DataError:
        """Return the error for a damaged file."""
        return DataError(f"{self.path} is damaged: {what}. Use another copy.")


def read_at(file: FileIO, begin: int, memory: np.ndarray) -> int:
    """Fill memory, uint8 (N,), with the bytes of an unbuffered file from `begin` on; return how many there were."""
    done = 0
    while done < memory.size and (got := _read(file, begin + done, memory.data[done : done + (1 << 30)])):
        done += got
    return done


def _read(file: FileIO, begin: int, memory: memoryview) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(file.fileno(), [memory], begin)
    with _seeking:  # Windows: threads share the file's position
        file.seek(begin)
        return file.readinto(memory)


def own_pages(size: int) -> np.ndarray:
    """Return memory, uint8 (size,), that returns to the system as soon as it is unused, while malloc may keep it.

    Its pages are small while NumPy asks for huge ones: a virtual machine may take milliseconds to find one of those.
    """
    if size < OWN_PAGES:
        return np.empty(size, np.uint8)
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    try:
        return np.frombuffer(mmap.mmap(-1, size, **private), np.uint8)
    except OSError:  # it is no file that cannot be read
        raise MemoryError(f"{size:,} bytes for an array") from None


def _stamp(descriptor: int) -> tuple[tuple[int, int, int], int]:
    """Return a file's inode, size and modification time, which a change alters; and its status-change time."""
    facts = os.fstat(descriptor)
    return (facts.st_ino, facts.st_size, facts.st_mtime_ns), 0 if os.name == "nt" else facts.st_ctime_ns
