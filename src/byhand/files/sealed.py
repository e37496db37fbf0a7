"""A folder of files with a manifest of sizes and SHA-256; a file that differs is refused.

Sizes are compared before reading, so a file that grew, or became a device, is never read to its end.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np

from byhand.errors import CheckpointError, UnknownCheckpointError, reason
from byhand.files.hashing import Hashing
from byhand.files.reading import SMALL, open_regular, parse_json, read_regular
from byhand.files.run_folder import MANIFEST
from byhand.files.weights import PIECE, OpenFile, own_pages, read_at

NAME = re.compile(r"[\w-][\w.-]{0,99}")
NO_FILE = (errno.EISDIR, errno.ENOTDIR, errno.EINVAL, errno.EFBIG)  # what replaced the file cannot be read as one
FORMAT = {"format": "byhand-checkpoint", "version": 1}


Content = Sequence[bytes | memoryview]  # of a file, in blocks
Read = Callable[[int, int], np.ndarray]  # (offset, count): bytes of a file, uint8
Again = Callable[[int, np.ndarray], None]  # (offset, memory): reads bytes of a file into memory, uint8


def as_json(value: Any) -> bytes:
    """Return a value as JSON; equal values give the same bytes."""
    return (json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()


def entries(contents: Mapping[str, Content]) -> dict[str, dict[str, Any]]:
    """Return the manifest's entries of files."""
    found = {}
    for name, content in contents.items():
        digest = sha256()
        for block in content:
            digest.update(block)
        found[name] = {"bytes": sum(map(len, content)), "sha256": digest.hexdigest()}
    return found


def manifest(files: Mapping[str, dict[str, Any]]) -> bytes:
    """Return the manifest of entries."""
    return as_json({**FORMAT, "files": files})


def entry_of(folder: Path, name: str) -> dict[str, Any] | None:
    """Return the manifest's entry of a file, None if it cannot be read."""
    try:
        return parse_json(read_regular(folder / MANIFEST, SMALL))["files"][name]
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Sealed:
    """The named files of a folder; CheckpointError unless the manifest is unchanged and all sizes agree.

    required  names that the manifest has
    known     further names that it may have

    Damaged means that it differs from what was written. A checkpoint that cannot be read, or is of another version,
    may be whole: that is an UnknownCheckpointError.
    """

    def __init__(self, path: Path, required: tuple[str, ...], known: re.Pattern[str]) -> None:
        self.path = path
        try:
            written = read_regular(path / MANIFEST, SMALL)
            read = parse_json(written)
            if read["format"] == FORMAT["format"] and read["version"] != FORMAT["version"]:
                raise newer(path, f"{MANIFEST} has version {str(read['version'])[:20]}")
            names = {*required, *read["files"]}
            self._entries = {n: (read["files"][n]["bytes"], read["files"][n]["sha256"]) for n in names}
            # Written again it must give the same bytes: so nothing in it is ignored.
            due = {n: {"bytes": size, "sha256": digest} for n, (size, digest) in self._entries.items()}
            if written != as_json({**FORMAT, "files": due}) or not all(map(NAME.fullmatch, names)):
                raise CheckpointError(f"{path} is damaged: {MANIFEST} is not as it was written.")
            for name, (size, digest) in self._entries.items():
                if type(size) is not int or type(digest) is not str:
                    raise TypeError
                found = os.stat(path / name).st_size
                if found != size:
                    raise CheckpointError(f"{path} is damaged: {name} has {found} bytes, not {size}.")
        except OSError as error:
            raise self._unreadable(error, MANIFEST) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CheckpointError(f"{path} is damaged: {MANIFEST} cannot be understood.") from None
        if unknown := sorted(name for name in names if name not in required and not known.fullmatch(name)):
            raise newer(path, f"it holds {unknown[0]}")

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        return sorted(self._entries)

    def size(self, name: str) -> int:
        """Return how many bytes a file has."""
        return self._entries[name][0]

    def read(self, name: str, most: int) -> bytes:
        """Return a file's bytes; CheckpointError if they differ from what was written, or are more than `most`."""
        with self.reading(name, most) as (read, size, _):
            return read(0, size).tobytes()

    @contextmanager
    def reading(self, name: str, most: int) -> Iterator[tuple[Read, int, Callable[[], Again]]]:
        """Give a function that reads a file's bytes in order, each once; its size; and `again`.

        A thread hashes what was read, which must not change before the end. CheckpointError if the bytes differ from
        what was written, or are more than `most`; it replaces a ValueError of the reader, which only followed from
        that.

        again  returns a function that rereads any bytes after the end, of this file even if its name now is another
               file's; several threads may call it, and it raises DataError once the file has other bytes
        """
        size, digest = self._entries[name]
        if size > most:
            raise CheckpointError(f"{self.path} is damaged: {name} has {size:,} bytes, more than its kind has.")
        seen, hashing = 0, Hashing()
        try:
            with hashing, os.fdopen(open_regular(self.path / name), "rb", buffering=0) as file:
                if os.fstat(file.fileno()).st_size != size:
                    raise CheckpointError(f"{self.path} is damaged: {name} changed while it was read.")

                def following(count: int) -> np.ndarray:
                    nonlocal seen
                    content = own_pages(count)
                    content = content[: read_at(file, seen, content)]
                    seen += len(content)
                    hashing.update(content.data)
                    return content

                def read(begin: int, count: int) -> np.ndarray:
                    assert begin == seen, f"{name} is read out of order"
                    content = following(count)
                    if len(content) != count:
                        raise ValueError("it ends early")
                    return content

                def again() -> Again:
                    kept = OpenFile(self.path / name, os.dup(file.fileno()), digest)

                    def read_again(begin: int, memory: np.ndarray) -> None:
                        kept.read_into(begin, memory)
                        while kept.require_unchanged():
                            kept.read_into(begin, memory)

                    finalize(read_again, kept.raw.close)
                    return read_again

                why: ValueError | None = None
                try:
                    yield read, size, again
                except ValueError as error:
                    why = error
                while seen < size and following(min(PIECE, size - seen)).size:
                    pass
        except OSError as error:
            raise self._unreadable(error, name) from None
        if seen != size or hashing.digest() != digest:
            raise CheckpointError(f"{self.path} is damaged: {name} does not have the SHA-256 of its manifest.")
        if why:
            raise why

    def _unreadable(self, error: OSError, name: str) -> CheckpointError:
        name = Path(str(error.filename or name)).name
        if isinstance(error, FileNotFoundError):
            return CheckpointError(f"{self.path} is not whole: {name} is missing.")
        if error.errno in NO_FILE:
            return CheckpointError(f"{self.path} is damaged: {name}: {reason(error)}.")
        return UnknownCheckpointError(
            f"{self.path} cannot be read: {name}: {reason(error)}. Make it readable, or move it away."
        )


def newer(path: Path, why: str) -> UnknownCheckpointError:
    """Return the error for an undamaged checkpoint of another version."""
    return UnknownCheckpointError(
        f"{path} is of another version of byhand: {why}. Use that version, or move it away to go on without it."
    )
