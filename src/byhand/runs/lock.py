"""One process per run folder: a lock that the operating system releases when its holder ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from byhand.errors import CheckpointError, reason
from byhand.files.writing import open_own

LOCK = "lock"
BUSY = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # by flock and by msvcrt.locking


@dataclass(frozen=True)
class HeldRun:
    """The run folder that this process holds, identified by inodes, since others may rename it.

    identities  (device, inode) of the folder and of the lock's file
    """

    run: Path
    identities: tuple[tuple[int, int], ...]

    def require_in_place(self) -> None:
        """Raise CheckpointError if the folder's name now leads elsewhere, or its lock is gone."""
        try:
            same = _identities(self.run) == self.identities
        except OSError:
            same = False
        if not same:
            raise CheckpointError(
                f"{self.run} is no longer the folder that this run began in: it, or its {LOCK}, was moved or "
                f"replaced. Nothing more is written. Go on with --resume and the folder's new name."
            )


@contextmanager
def locked(run: Path) -> Iterator[HeldRun]:
    """Hold a run folder, which exists, inside the `with` block; CheckpointError if another process holds it."""
    with _held(run) as file:
        status = os.fstat(file.fileno())
        try:
            place = HeldRun(run, (_identities(run)[0], (status.st_dev, status.st_ino)))
        except OSError:
            place = HeldRun(run, ())
        place.require_in_place()
        yield place


def _identities(run: Path) -> tuple[tuple[int, int], ...]:
    """Return (device, inode) of the folder that has the run's name now, and of its lock."""
    both = os.stat(run), os.lstat(run / LOCK)
    return tuple((status.st_dev, status.st_ino) for status in both)


def _held(run: Path) -> BinaryIO:
    """Return the locked file, with this process's number in it."""
    file = None
    try:
        file = os.fdopen(open_own(run / LOCK, os.O_RDWR), "r+b", buffering=0)
        _acquire(file.fileno())
        if os.fstat(file.fileno()).st_nlink > 1:
            file.close()
            raise CheckpointError(
                f"cannot use {run / LOCK}: it is a hard link to another file. Remove this link, and try again."
            )
        file.truncate(0)
        os.write(file.fileno(), f"process {os.getpid()}\n".encode())
    except OSError as error:
        busy = file is not None and error.errno in BUSY
        holder = file.read(100).decode(errors="replace").strip() if file and busy else ""
        if file:
            file.close()
        if busy:
            raise CheckpointError(
                f"{run} is in use by {holder or 'another process'}. Wait for it, or train in another folder."
            ) from None
        raise CheckpointError(
            f"cannot use {run / LOCK}: {reason(error)}. Check its permissions and the free space, "
            f"or choose another folder."
        ) from None
    return file


if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int) -> None:
        """Lock a byte far beyond the text: on Windows others cannot read locked bytes."""
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
else:
    import fcntl

    def _acquire(descriptor: int) -> None:
        """Lock the file; the lock ends with the process."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
