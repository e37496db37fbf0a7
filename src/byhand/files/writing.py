"""Writing whole files or none, never through a symbolic or hard link.

A link may lead to another user's file, so a file is created where none was, or written under a temporary name and
renamed. Every OSError names the file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from byhand.errors import reason
from byhand.files.reading import open_regular

TEMPORARY = ".writing-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # fails where a file or a link, even a dangling one, is
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def create(path: Path, content: Iterable[bytes | memoryview]) -> None:
    """Write a new file and make it durable; FileExistsError if it exists. A failure leaves no file."""
    with _naming(path):
        descriptor = os.open(path, _NEW | _FLAGS, 0o666)
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


def create_all(contents: Iterable[tuple[Path, bytes | Iterable[bytes | memoryview]]]) -> list[Path]:
    """Write new files, all of them or none, and return their paths; whatever fails or interrupts it, none stays."""
    written = list[Path]()
    try:
        for path, content in contents:
            create(path, [content] if isinstance(content, bytes) else content)
            written.append(path)
    except BaseException:
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise
    return written


def replace(path: Path, content: Iterable[bytes | memoryview]) -> None:
    """Write or replace a file: a reader finds the old one or the new one, whole."""
    beside = path.with_name(f"{TEMPORARY}{path.name}")
    with suppress(FileNotFoundError):
        beside.unlink()
    with _naming(path):
        try:
            create(beside, content)
            beside.replace(path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
    sync_folder(path.parent)


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
    """Open a regular file that is no link, created if absent, and return its descriptor; the caller closes it."""
    with _naming(path):
        if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        # O_NONBLOCK: opening a FIFO that nobody reads returns at once.
        descriptor = os.open(path, flags | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | _FLAGS, 0o666)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")


def remedy(error: OSError, again: str) -> str:
    """Return what to do about a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", None)):
        return f"Free some space and {again}."
    if error.errno == errno.EIO:
        return f"Check its disk and {again}."
    return f"Make it writable and {again}."


def sync_folder(path: Path) -> None:
    """Make a rename durable; Windows and some network file systems have no such call."""
    if os.name == "nt":
        return
    with _naming(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(descriptor)


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
    """Give every OSError the name of the file; those of `write` and `fsync` lack it."""
    try:
        yield
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else reason(error)
        raise OSError(error.errno, why, str(path)) from None
