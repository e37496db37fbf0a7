"""Where a text comes from: a file, a folder, standard input, the standard library, or a download checked by hash."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from byhand.corpus.text_file import TextFile, blocks
from byhand.errors import DataError, reason
from byhand.files.reading import open_regular, read_regular
from byhand.files.run_folder import is_of_byhand
from byhand.files.user_cache import cache_folder
from byhand.files.writing import replace

SHAKESPEARE_URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
MOST = 1 << 31  # bytes of a text in memory
STDIN = "standard input"
NOT_THE_LIBRARY = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}


@dataclass(frozen=True)
class Text:
    """A text's bytes, what to call it, and the file that holds them (None: they exist only in memory)."""

    content: np.ndarray | TextFile
    name: str
    path: Path | None = None

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the bytes; reads all of them."""
        digest = hashlib.sha256()
        for block in blocks(self.content):
            digest.update(block.data)
        return digest.hexdigest()


def open_text(source: str) -> Text:
    """Return the text that --data names.

    source  a file (read where it is needed), a folder (its text files in order of path), `-` (standard input),
            `python-stdlib` (the running interpreter's library), or `shakespeare` (1.1 MB, downloaded once)
    Raises DataError, one line, if there is nothing to read.
    """
    if source == "-":
        content = sys.stdin.buffer.read(MOST + 1)
        if len(content) > MOST:
            raise DataError(
                f"{STDIN} holds more than {MOST:,} bytes. Make one file of it, and name that with --data."
            )
        return _in_memory(content, STDIN)
    if source == "python-stdlib":
        return _in_memory(_join(_library_files()), "python-stdlib")
    if source == "shakespeare":
        path = cached_download(SHAKESPEARE_URL, SHAKESPEARE_SHA256, _downloads() / "tinyshakespeare.txt")
        return on_disk(path, "shakespeare")
    path = Path(source)
    if not source:
        raise DataError("--data names no file. Use a file, a folder, or --data python-stdlib.")
    try:
        if path.is_dir():
            return _in_memory(_join(_text_files(path)), f"{source} (a folder)")
        if not path.exists():
            raise DataError(f"there is no file or folder {source}. Check the name, or use python-stdlib.")
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise DataError(f"cannot read {source[:200]}: {reason(error)}. Check its name and permissions.") from None
    return on_disk(path, source)


def on_disk(path: Path, name: str) -> Text:
    """Return the text of a file; DataError if it is none, or empty."""
    return Text(TextFile(path), name, path.resolve())


def _downloads() -> Path:
    folder = cache_folder()
    if folder is None:
        raise DataError("there is no home folder to keep a download in. Set BYHAND_CACHE to a folder.")
    return folder


def cached_download(url: str, sha256: str, target: Path) -> Path:
    """Return `target`, downloaded from url unless a file with this hash is there; a wrong hash is never kept."""
    with suppress(OSError):
        if hashlib.sha256(read_regular(target, MOST)).hexdigest() == sha256:
            return target
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            content = answer.read(MOST)
    except (urllib.error.URLError, OSError) as error:
        why = getattr(error, "reason", error)
        raise DataError(
            f"cannot download {url}: {why}. Connect to the network, or pass a file of your own with --data."
        ) from None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataError(f"{url} has SHA-256 {found[:12]}…, not {sha256[:12]}…. Pass a file of your own with --data.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace(target, [content])
    except OSError as error:
        raise DataError(
            f"cannot write {error.filename}: {reason(error)}. Name another folder with BYHAND_CACHE, "
            f"or pass a file of your own with --data."
        ) from None
    return target


def _in_memory(content: bytes, name: str) -> Text:
    if not content:
        raise DataError(f"{name} holds no text. Use --data with a file or folder that does.")
    return Text(np.frombuffer(content, dtype=np.uint8), name)


def _join(paths: list[Path]) -> bytes:
    try:
        total = sum(path.stat().st_size for path in paths)
        if total > MOST:
            raise DataError(f"{len(paths):,} files hold {total:,} bytes. Make one file of them, and name that.")
        return b"".join(read_regular(path, MOST) for path in paths)
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {reason(error)}. Check its permissions.") from None


def _library_files() -> list[Path]:
    """List the standard library's source files in a fixed order, without tests and installed packages."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = (p for p in root.rglob("*.py") if not NOT_THE_LIBRARY & set(p.relative_to(root).parts))
    return sorted(files, key=lambda p: p.relative_to(root).as_posix())


def _text_files(folder: Path) -> list[Path]:
    """List a folder's text files in order of path.

    It leaves out hidden files, files with a NUL byte at their start, and byhand's own runs and checkpoints.
    """

    def refuse(error: OSError) -> None:
        raise DataError(f"cannot read {error.filename}: {reason(error)}. Check its permissions.")

    found: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=refuse):
        if is_of_byhand(Path(place)):
            folders.clear()
            continue
        folders[:] = [f for f in folders if not f.startswith(".")]
        found += [Path(place, f) for f in files if not f.startswith(".")]
    return sorted((p for p in found if p.is_file() and not _is_binary(p)), key=lambda p: p.as_posix())


def _is_binary(path: Path) -> bool:
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            return b"\0" in file.read(8192)
    except OSError:
        return False  # reading the text will report the error
