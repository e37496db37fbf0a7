"""Removes byhand's own files and nothing else: real folders that hold only files of a checkpoint.

A checkpoint is renamed first, so that a kill leaves none that looks whole; the next save removes the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container
from contextlib import suppress
from itertools import count
from pathlib import Path

from byhand.files import writing
from byhand.files.run_folder import MANIFEST, step_of
from byhand.files.writing import TEMPORARY

REMOVING = ".removing-"
LEFT = re.compile(rf"(?:{re.escape(TEMPORARY)}|{re.escape(REMOVING)})(step-[0-9]+)")
PLACE = re.compile(rf"({re.escape(TEMPORARY)}|{re.escape(REMOVING)}|)(step-[0-9]+)")  # names used in saving a step


def remove(checkpoint: Path, ours: re.Pattern[str]) -> None:
    """Remove a checkpoint if all its files match `ours`; a link, or a folder with other files, stays.

    Raises OSError if it cannot be renamed.
    """
    if _has_only(checkpoint, ours):
        doomed = checkpoint.with_name(f"{REMOVING}{checkpoint.name}")
        checkpoint.rename(doomed)
        remove_files(doomed, ours)


def set_aside(checkpoint: Path, ours: re.Pattern[str]) -> None:
    """Rename a damaged checkpoint, perhaps of another run, out of the way of saves; OSError if that fails."""
    if _has_only(checkpoint, ours):
        names = (f"damaged-{checkpoint.name}{f'-{i}' * (i > 1)}" for i in count(1))
        checkpoint.rename(next(p for p in map(checkpoint.with_name, names) if not os.path.lexists(p)))


def remove_left_over(run: Path, ours: re.Pattern[str]) -> None:
    """Remove the remains of files and checkpoints whose writing or removal was killed."""
    writing.remove_left_over(run)
    for path in run.iterdir():
        match = LEFT.fullmatch(path.name)
        if match and step_of(match[1]) is not None and _has_only(path, ours):
            remove_files(path, ours)


def in_the_way(run: Path, steps: Container[int], ours: re.Pattern[str]) -> Path | None:
    """Return a path named as a checkpoint of these steps that byhand may not remove, or None."""
    for path in sorted(run.iterdir()):
        match = PLACE.fullmatch(path.name)
        if match is None or (step := step_of(match[2])) is None or step not in steps:
            continue
        needed = match[1] != REMOVING or os.path.lexists(run / match[2])
        if needed and not _has_only(path, ours):
            return path
    return None


def remove_files(folder: Path, ours: re.Pattern[str]) -> None:
    """Remove files that match `ours`, the manifest first, and the folder if then empty; failing does no harm."""
    with suppress(OSError):
        for name in sorted(os.listdir(folder), key=lambda name: name != MANIFEST):
            if ours.fullmatch(name):
                (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _has_only(folder: Path, ours: re.Pattern[str]) -> bool:
    return folder.is_dir() and not folder.is_symlink() and all(map(ours.fullmatch, os.listdir(folder)))
