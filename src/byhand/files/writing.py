"""Writes whole files or none, whatever ends the process, and never through a symbolic or hard link.

Files are written into a folder beside their targets, and get their names when all of them are whole:

    .writing-5f0c1a2b3d4e5f60/   being written, or left by a process that was killed
    .written-5f0c1a2b3d4e5f60/   all have their names, each by a hard link; the folder can be removed

A link may lead to another user's file, so we create a file only where none exists, or rename another to its name.
Every OSError names the file.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from byhand.errors import reason
from byhand.files.reading import open_regular

TEMPORARY = ".writing-"
WRITTEN, UNDOING = ".written-", ".undoing-"
STAGE = re.compile(rf"({re.escape(TEMPORARY)}|{re.escape(WRITTEN)}|{re.escape(UNDOING)})([0-9a-f]{{16}})")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # fails where a file or a link, even a dangling one, is
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)

_stages: set[Path] = set()  # of this process, with files that have no names yet


def write_new(path: Path, content: Iterable[bytes | memoryview], mode: int = 0o666) -> None:
    """Write a new file in place, and make it durable; FileExistsError if it exists.

    A failure leaves no file, but a kill leaves a partial one: for a folder that is not read before it is whole.
    """
    with _naming(path):
        descriptor = os.open(path, _NEW | _FLAGS, mode)
        try:
            for block in content:
                _write(descriptor, block)
            os.fsync(descriptor)
        except BaseException:  # an interrupt too
            with suppress(OSError):
                path.unlink()
            raise
        finally:
            os.close(descriptor)


def create(path: Path, content: Iterable[bytes | memoryview]) -> None:
    """Write a new file, whole or not at all, and make it durable; FileExistsError if it exists."""
    create_all(path.parent, [(path.name, content)])


def create_all(folder: Path, contents: Iterable[tuple[str, bytes | Iterable[bytes | memoryview]]]) -> list[Path]:
    """Write new files, all of them or none, whatever fails or ends the process; return their paths."""
    named = list[Path]()
    with _stage(folder) as stage:
        try:
            for name, content in contents:
                with _naming(folder / name):
                    write_new(stage / name, [content] if isinstance(content, bytes) else content)
                    named.append(folder / name)
            for path in named:
                with _naming(path):
                    _name(stage / path.name, path)
            with _naming(folder):
                stage.rename(stage.with_name(stage.name.replace(TEMPORARY, WRITTEN)))
        except BaseException:
            _undo(stage)
            raise
    return named


def replace(path: Path, content: Iterable[bytes | memoryview], mode: int = 0o666) -> None:
    """Write or replace a file: a reader finds the old one or the new one, whole."""
    with _naming(path), _stage(path.parent) as stage:
        write_new(stage / path.name, content, mode)
        (stage / path.name).replace(path)
    sync(path.parent)


def remove_left_over(folder: Path) -> None:
    """Remove what killed processes left in a folder: unfinished files, and sets of which not all have their names."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            match = STAGE.fullmatch(path.name)
            if match and path.is_dir() and not path.is_symlink() and (held := _held(path)) is not None:
                _discard(path) if match[1] == WRITTEN else _undo(path)
                os.close(held)


def abandon() -> None:
    """Undo what this process has not finished; called by another thread before it ends the process."""
    for stage in list(_stages):
        _undo(stage)


@contextmanager
def _stage(folder: Path) -> Iterator[Path]:
    """Make a folder for files that get their names when they are whole; remove it at the end."""
    remove_left_over(folder)
    stage, held = folder, None
    for _ in range(10):  # until we hold it, another process may take it for a left-over
        stage = folder / f"{TEMPORARY}{secrets.token_hex(8)}"
        with _naming(folder):
            stage.mkdir()
        if (held := _held(stage)) is not None:
            break
    _stages.add(stage)
    try:
        yield stage
        _discard(stage.with_name(stage.name.replace(TEMPORARY, WRITTEN)))
    finally:
        _stages.discard(stage)
        if held is not None:
            os.close(held)
        _discard(stage)


def _name(staged: Path, path: Path) -> None:
    """Give a whole file its name; FileExistsError if it is taken."""
    try:
        os.link(staged, path)
    except OSError as error:  # such as a file system without hard links
        if isinstance(error, FileExistsError) or os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        staged.rename(path)


def _undo(stage: Path) -> None:
    """Remove a stage and the names of its files, unless it is finished or another process undoes it."""
    doomed = stage.with_name(STAGE.sub(rf"{UNDOING}\2", stage.name))
    with suppress(OSError):
        stage.rename(doomed)  # atomic: from here on the files cannot be finished
        for name in os.listdir(doomed):
            with suppress(OSError):
                if os.path.samestat(os.lstat(doomed / name), os.lstat(stage.parent / name)):
                    (stage.parent / name).unlink()
        _discard(doomed)


def _discard(stage: Path) -> None:
    with suppress(OSError):
        for name in os.listdir(stage):
            (stage / name).unlink()
        stage.rmdir()


def append(path: Path, content: bytes) -> None:
    """Append bytes to a file, created on first use; a file with a second hard link is copied first."""
    with _naming(path):
        descriptor = open_own(path, os.O_WRONLY | os.O_APPEND)
        try:
            shared = os.fstat(descriptor).st_nlink > 1
            if not shared:
                _write(descriptor, content)
        finally:
            os.close(descriptor)
    if shared:
        replace(path, chain(_blocks(path), [content]))


def open_own(path: Path, flags: int) -> int:
    """Open a regular file, not a link, created if absent; return its descriptor, which the caller closes."""
    with _naming(path):
        if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        # O_NONBLOCK: opening a FIFO without a reader returns at once.
        descriptor = os.open(path, flags | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | _FLAGS, 0o666)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")


def remedy(error: OSError, again: str) -> str:
    """Return what to do about a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", None)):
        return f"Free some space and {again}."
    if error.errno == errno.EIO:
        return f"Check its disk and {again}."
    return f"Make it writable and {again}."


def sync(path: Path) -> None:
    """Make renames in a folder, or appended lines of a file, durable; Windows and some file systems cannot."""
    if os.name == "nt":
        return
    with _naming(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(descriptor)


if sys.platform == "win32":

    def _held(stage: Path) -> int | None:
        """Return a descriptor; on Windows, files that another process writes cannot be removed."""
        return os.open(os.devnull, os.O_RDONLY)
else:
    import fcntl

    def _held(stage: Path) -> int | None:
        """Hold a stage until the descriptor is closed; None if another process holds it, or removed it."""
        try:
            descriptor = os.open(stage, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        busy = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            busy = error.errno in (errno.EAGAIN, errno.EACCES)
        if busy or not stage.is_dir():
            os.close(descriptor)
            return None
        return descriptor


def _blocks(path: Path) -> Iterator[bytes]:
    with os.fdopen(open_regular(path), "rb") as file:
        while block := file.read(1 << 20):
            yield block


def _write(descriptor: int, content: bytes | memoryview) -> None:
    left = memoryview(content).cast("B")
    while left:
        left = left[os.write(descriptor, left[: 1 << 30]) :]


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Give every OSError the file's name, which those of `write` and `fsync` lack."""
    try:
        yield
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else reason(error)
        raise OSError(error.errno, why, str(path)) from None
