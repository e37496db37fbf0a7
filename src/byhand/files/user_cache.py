"""The user's own cache folder: downloads, encoded texts and compiled code.

    BYHAND_CACHE if it is set, else
    %LOCALAPPDATA%/byhand (Windows), ~/Library/Caches/byhand (macOS), $XDG_CACHE_HOME/byhand or ~/.cache/byhand

Without a home, or if the folder belongs to another user, nothing is cached. Code and tokens that another user could
have written are never read.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from byhand.files.reading import read_with_facts
from byhand.files.writing import replace

DAY = 24 * 60 * 60  # seconds


def cache_folder() -> Path | None:
    """Return the folder's path, whether or not it exists; None if the user has no home."""
    if named := os.environ.get("BYHAND_CACHE"):
        return Path(named).absolute()
    try:
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "byhand"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "byhand"
        base = os.environ.get("XDG_CACHE_HOME") or ""
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "byhand"
    except RuntimeError:  # neither HOME nor an entry for this user
        return None


def read_own(path: Path, most: int) -> bytes:
    """Return the bytes of a file that only this user (or root) could have written.

    Raises OSError, as `read_regular` does, and PermissionError if the file is another user's or writable by others.
    """
    content, facts = read_with_facts(path, most)
    require_own(facts, path)
    return content


def require_own(facts: os.stat_result, path: Path) -> None:
    """Raise PermissionError if someone other than this user (or root) could have written a file of this status."""
    if not _is_own(facts):
        raise PermissionError(1, "it belongs to another user, or others may write to it", str(path))


def write_own(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file whole or not at all, into a folder made for this user alone.

    Raises OSError: no space, no permission, or another user's folder.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = os.lstat(path.parent)
    if not stat.S_ISDIR(facts.st_mode) or not _is_own(facts):
        raise PermissionError(1, "it belongs to another user, or others may write to it", str(path.parent))
    replace(path, [content] if isinstance(content, bytes) else content, 0o600)


def remove_older(folder: Path, names: str, days: int) -> None:
    """Remove the user's folders whose names match and that are at least `days` old; links stay."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            facts = entry.stat(follow_symlinks=False)
            old = time.time() - facts.st_mtime >= days * DAY
            if old and re.fullmatch(names, entry.name) and stat.S_ISDIR(facts.st_mode) and _is_own(facts):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_own(facts: os.stat_result) -> bool:
    """Return whether only this user or root may write. Windows separates profiles by other means."""
    if os.name == "nt":
        return True
    return facts.st_uid in (os.geteuid(), 0) and not facts.st_mode & 0o022
