"""SHA-256 of a file's pieces: a thread hashes one while the next is read."""

from __future__ import annotations

from _thread import start_new_thread
from hashlib import sha256
from queue import SimpleQueue
from typing import Any


class Hashing:
    """The SHA-256 of pieces, within a `with` block; if the system refuses a thread, `update` hashes them itself.

    Ctrl-C may come at any point. A pool, or a `Thread`, takes locks in Python code: one could stay taken, and ending
    the pool would wait for ever. Here only a queue is shared, and nobody waits for the thread to end.
    """

    def __init__(self) -> None:
        self._found = sha256()
        self._given, self._hashed = SimpleQueue[memoryview | None](), SimpleQueue[None]()
        self._under_way = False  # the last piece
        self._beside: bool | None = None  # whether a thread hashes; None before the first piece

    def __enter__(self) -> Hashing:
        return self

    def __exit__(self, *_: object) -> None:
        self._given.put(None)

    def update(self, piece: memoryview) -> None:
        """Begin to hash the next piece, which must not change before the end."""
        if self._beside is None:
            self._beside = self._start()
        self._wait()
        if self._beside:
            self._given.put(piece)
            self._under_way = True
        else:
            self._found.update(piece)

    def digest(self) -> str:
        """Return the SHA-256 of all pieces in hexadecimal."""
        self._wait()
        return self._found.hexdigest()

    def _start(self) -> bool:
        try:
            start_new_thread(_serve, (self._found, self._given, self._hashed))
        except RuntimeError:
            return False
        return True

    def _wait(self) -> None:
        if self._under_way:
            self._hashed.get()
            self._under_way = False


def _serve(found: Any, given: SimpleQueue[memoryview | None], hashed: SimpleQueue[None]) -> None:
    while (piece := given.get()) is not None:
        found.update(piece)
        del piece  # its memory holds the next
        hashed.put(None)
