"""One process per run folder: a lock that the operating system releases when its holder ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from byhand.errors import CheckpointError, reason
from byhand.writing import open_own

LOCK = "lock"
BUSY = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # by flock and by msvcrt.locking


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Hold a run folder, which exists, inside the `with` block; CheckpointError if another process holds it."""
    file = _held(run)
    with file:
        yield


def _held(run: Path) -> BinaryIO:
    """Return the lock's file, locked, with this process's number in it."""
    file = None
    try:
        file = os.fdopen(open_own(run / LOCK, os.O_RDWR), "r+b", buffering=0)
        _acquire(file.fileno())
        file.truncate(0)
        os.write(file.fileno(), f"process {os.getpid()}\n".encode())
    except OSError as error:
        busy = file is not None and error.errno in BUSY
        holder = file.read(100).decode(errors="replace").strip() if file and busy else ""
        if file:
            file.close()
        if busy:
            raise CheckpointError(
                f"{run} is in use by {holder or 'another process'}. Wait for it, or choose another folder with --out."
            ) from None
        raise CheckpointError(
            f"cannot use {run / LOCK}: {reason(error)}. Check its permissions and the free space, "
            f"or choose another folder."
        ) from None
    return file


if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int) -> None:
        """Lock a byte far behind the text, since Windows keeps others from reading what is locked."""
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
else:
    import fcntl

    def _acquire(descriptor: int) -> None:
        """Lock the file; the lock goes with the process."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
