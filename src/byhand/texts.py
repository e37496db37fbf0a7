"""Where a text comes from: a file, a folder, standard input, the standard library, or a download checked by hash."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from byhand.data import map_file
from byhand.errors import DataError
from byhand.user_cache import cache_folder

SHAKESPEARE_URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
RUN_FILES = {"metrics.jsonl", "manifest.json"}  # a folder with one of these is a run of byhand, not a text
NOT_THE_LIBRARY = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}


@dataclass(frozen=True)
class Text:
    """A text's bytes, what to call it, and the file it is mapped from (None: it exists only in memory).

    `facts` are that file's size and time of change when it was opened.
    """

    tokens: np.ndarray
    name: str
    path: Path | None = None
    facts: tuple[int, int] | None = None


def open_text(source: str) -> Text:
    """Return the text that --data names.

    source  a file (memory-mapped), a folder (its text files in order of path), `-` (standard input),
            `python-stdlib` (the running interpreter's library), or `shakespeare` (1.1 MB, downloaded once)
    Raises DataError, one line, if there is nothing to read.
    """
    if source == "-":
        return _in_memory(sys.stdin.buffer.read(), "standard input")
    if source == "python-stdlib":
        return _in_memory(_join(_library_files()), "python-stdlib")
    if source == "shakespeare":
        path = cached_download(SHAKESPEARE_URL, SHAKESPEARE_SHA256, _downloads() / "tinyshakespeare.txt")
        return mapped(path, "shakespeare")
    path = Path(source)
    if not source:
        raise DataError("--data names no file. Use a file, a folder, or --data python-stdlib.")
    if path.is_dir():
        return _in_memory(_join(_text_files(path)), f"{source} (a folder)")
    if not path.exists():
        raise DataError(f"there is no file or folder {source}. Check --data, or use --data python-stdlib.")
    return mapped(path, source)


def mapped(path: Path, name: str) -> Text:
    """Return the text of a file, memory-mapped."""
    tokens = map_file(path)
    return Text(tokens, name, path.resolve(), file_facts(path))


def file_facts(path: Path) -> tuple[int, int] | None:
    """Return a file's size and time of change, or None if it is gone (what was mapped stays readable)."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns


def _downloads() -> Path:
    folder = cache_folder()
    if folder is None:
        raise DataError("there is no home folder to keep a download in. Set BYHAND_CACHE to a folder.")
    return folder


def cached_download(url: str, sha256: str, target: Path) -> Path:
    """Return `target`, downloaded from url unless a file with this hash is there; a wrong hash is never kept."""
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == sha256:
        return target
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            content = answer.read()
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise DataError(
            f"cannot download {url}: {reason}. Connect to the network, or pass a file of your own with --data."
        ) from None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataError(f"{url} has SHA-256 {found[:12]}…, not {sha256[:12]}…. Pass a file of your own with --data.")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}.part")
    partial.write_bytes(content)
    partial.replace(target)
    return target


def _in_memory(content: bytes, name: str) -> Text:
    if not content:
        raise DataError(f"{name} holds no text. Use --data with a file or folder that does.")
    return Text(np.frombuffer(content, dtype=np.uint8), name)


def _join(paths: list[Path]) -> bytes:
    try:
        return b"".join(path.read_bytes() for path in paths)
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}. Check its permissions.") from None


def _library_files() -> list[Path]:
    """List the standard library's source files in a fixed order, without tests and installed packages."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = (p for p in root.rglob("*.py") if not NOT_THE_LIBRARY & set(p.relative_to(root).parts))
    return sorted(files, key=lambda p: p.relative_to(root).as_posix())


def _text_files(folder: Path) -> list[Path]:
    """List a folder's files in order of path, without what is no text of its owner.

    Hidden files, files with a NUL byte at their start, and the folders of byhand's own runs are left out.
    """

    def refuse(error: OSError) -> None:
        raise DataError(f"cannot read {error.filename}: {error.strerror}. Check its permissions.")

    found: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=refuse):
        if RUN_FILES & set(files):
            folders.clear()
            continue
        folders[:] = [f for f in folders if not f.startswith(".")]
        found += [Path(place, f) for f in files if not f.startswith(".")]
    return sorted((p for p in found if p.is_file() and not _is_binary(p)), key=lambda p: p.as_posix())


def _is_binary(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b"\0" in file.read(8192)
    except OSError:
        return False  # reading it again will say what is wrong
