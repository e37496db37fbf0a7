"""One process per run folder: a lock that the operating system releases when its holder ends, however it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from byhand.errors import CheckpointError


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Hold the run folder inside the `with` block; CheckpointError if another process holds it."""
    try:
        run.mkdir(parents=True, exist_ok=True)
        file = (run / "lock").open("a+b")
    except OSError as error:
        raise CheckpointError(
            f"cannot use {run}: {error.strerror}. Check its permissions, or choose another folder."
        ) from None
    with file:
        if not _acquire(file.fileno()):
            file.seek(0)
            holder = file.read().decode(errors="replace").strip() or "another process"
            raise CheckpointError(f"{run} is in use by {holder}. Wait for it, or choose another folder with --out.")
        file.truncate(0)
        file.write(f"process {os.getpid()}\n".encode())
        file.flush()
        yield


if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int) -> bool:
        """Lock a byte far behind the text, since Windows keeps others from reading what is locked."""
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True
else:
    import fcntl

    def _acquire(descriptor: int) -> bool:
        """Lock the file; the lock goes with the process."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
