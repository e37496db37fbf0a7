"""The files that --data names: files, folders, patterns; the standard library's source, and a download."""

from __future__ import annotations

import glob
import hashlib
import os
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from byhand.errors import DataError, reason
from byhand.files.reading import read_regular
from byhand.files.run_folder import is_of_byhand
from byhand.files.user_cache import cache_folder
from byhand.files.writing import replace

MOST = 1 << 31  # bytes of a text in memory, or of a download
NOT_THE_LIBRARY = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}


class Excluded:
    """Tells whether one of several patterns leaves out a path, relative to its folder.

    A pattern matches the path, or the name of the file or of a folder on the way to it; `*` matches / too.
    """

    def __init__(self, patterns: str | Iterable[str]) -> None:
        patterns = [patterns] * bool(patterns) if isinstance(patterns, str) else patterns
        self.forms = {pattern: {pattern, pattern.replace("**/", "")} for pattern in patterns}
        self.unused = set(self.forms)

    def __call__(self, path: Path) -> bool:
        """Return whether the path is left out."""
        named = (path.as_posix(), *path.parts)
        matching = {p for p, forms in self.forms.items() if any(fnmatchcase(n, f) for n in named for f in forms)}
        self.unused -= matching
        return bool(matching)


def files_of(sources: Iterable[str], excluded: Callable[[Path], bool] = lambda path: False) -> dict[Path, bool]:
    """Return the files that sources name, in order, each once, and whether it was named itself.

    A folder stands for its files in order of path, without hidden ones and byhand's own runs and checkpoints; a name
    with `*`, `?` or `[` that is not a file, for its matches. Raises DataError if there are none.

    excluded  tells which are left out
    """
    found: dict[Path, bool] = {}
    seen: set[str] = set()
    for source in sources:
        for path, named in _files_of(source, excluded):
            real = os.path.realpath(path)
            if real not in seen:
                found[path] = named
                seen.add(real)
    return found


def _files_of(source: str, excluded: Callable[[Path], bool]) -> Iterator[tuple[Path, bool]]:
    if not source:
        raise DataError("--data names no file. Use a file, a folder, or --data python-stdlib.")
    path = Path(source)
    try:
        if path.is_dir():
            yield from ((file, False) for file in _inside(path, excluded))
        elif path.exists():
            if not excluded(path):
                yield path, True
        elif glob.has_magic(source):
            matching = sorted(Path(found) for found in glob.glob(source, recursive=True) if os.path.isfile(found))
            if not matching:
                raise DataError(f"no file matches {source[:200]}. Check the pattern.")
            yield from ((file, False) for file in matching if not excluded(file))
        else:
            if "://" in source:
                raise DataError(
                    f"{source[:200]} is an address, and byhand downloads nothing. Save it and name the file."
                )
            raise DataError(f"there is no file or folder {source}. Check the name, or use python-stdlib.")
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise DataError(f"cannot read {source[:200]}: {reason(error)}. Check its name and permissions.") from None


def _inside(folder: Path, excluded: Callable[[Path], bool]) -> list[Path]:
    """List a folder's files in order of path."""

    def kept(place: str, names: list[str]) -> list[str]:
        return [n for n in names if not n.startswith(".") and not excluded(Path(place, n).relative_to(folder))]

    def refuse(error: OSError) -> None:
        raise DataError(f"cannot read {error.filename}: {reason(error)}. Check its permissions, or use --exclude.")

    found: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=refuse):
        if is_of_byhand(Path(place)):
            folders.clear()
            continue
        folders[:] = kept(place, folders)
        found += [Path(place, name) for name in kept(place, files)]
    return sorted((p for p in found if p.is_file()), key=lambda p: p.as_posix())


def library() -> bytes:
    """Return the standard library's source in a fixed order, without tests and installed packages."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = (p for p in root.rglob("*.py") if not NOT_THE_LIBRARY & set(p.relative_to(root).parts))
    try:
        return b"".join(
            read_regular(path, MOST) for path in sorted(files, key=lambda p: p.relative_to(root).as_posix())
        )
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {reason(error)}. Check its permissions.") from None


def download_folder() -> Path:
    """Return where downloads are kept."""
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
