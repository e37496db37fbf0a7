"""Run folders, recognised by their content, never by their name or by files that others may have made.

    RUN/run.json        the marker, written when byhand began the run in a new or empty folder
    RUN/step-00001000/  a checkpoint; it marks runs of versions without run.json

byhand writes only into runs, and removes only files of its own names; any other folder belongs to the user.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from byhand.errors import CheckpointError, command, reason
from byhand.files.reading import SMALL, read_regular
from byhand.files.writing import write_new
from byhand.quantities import counted

MARKER, MARK = "run.json", b'{"format": "byhand-run", "version": 1}\n'
METRICS = "metrics.jsonl"
MANIFEST, MODEL, STATE = "manifest.json", "model.safetensors", "trainer_state.json"
FOREIGN = (".gguf", ".safetensors", ".bin")  # other programs' files of weights
SEALED = re.compile(
    rb'\{\n  "files": \{\n.*\},\n  "format": "byhand-checkpoint",\n  "version": ([0-9]+)\n\}\n', re.DOTALL
)
STEP = re.compile(r"step-([0-9]{8,18})")
STEPS = 10**18  # more than any step


def step_of(name: str) -> int | None:
    """Return the step in a checkpoint's name, or None for any other name."""
    match = STEP.fullmatch(name)
    return int(match[1]) if match and name == name_of(int(match[1])) else None


def name_of(step: int) -> str:
    """Return the name of a step's checkpoint."""
    return f"step-{step:08d}"


def checkpoints(run: Path) -> list[Path]:
    """List the folders with a checkpoint's name from new to old, whole or not."""
    steps = {name: step for name in _names(run) if (step := step_of(name)) is not None}
    found = [run / name for name in sorted(steps, key=lambda name: steps[name], reverse=True)]
    return [path for path in found if os.path.isdir(path) and not _holds_a_run(path)]


def again_with(checkpoint: Path | None) -> str:
    """Return how to continue a stopped run: resume, or without a checkpoint begin again."""
    return "resume" if checkpoint else "run the same command again"


def is_run(folder: Path) -> bool:
    """Return whether byhand began a run here: the marker, or a checkpoint with byhand's manifest, is there."""
    return _mark(folder) == MARK or any(map(_is_sealed, checkpoints(folder)))


def is_checkpoint(folder: Path) -> bool:
    """Return whether a folder is one checkpoint, whole or damaged, and not a run."""
    return bool({MANIFEST, MODEL} & set(_names(folder))) and not _holds_a_run(folder)


def is_of_byhand(folder: Path) -> bool:
    """Return whether a folder is certainly a run or a checkpoint, and so not a text of the user."""
    return is_run(folder) or _is_sealed(folder)


def runs_in(folder: Path) -> list[Path]:
    """Return the runs that a folder holds, by name."""
    return [folder / name for name in _names(folder) if is_run(folder / name)]


def without_checkpoint(folder: Path) -> CheckpointError:
    """Return the error for a folder without a checkpoint: a run stopped early, a folder of runs, or no run."""
    if is_run(folder):
        return CheckpointError(f"{folder} has no checkpoint yet. Wait for one, or repeat its `byhand train`.")
    if runs := runs_in(folder):
        return CheckpointError(f"{folder} holds {counted(len(runs), 'run')}. Give one of them, such as {runs[0]}.")
    return CheckpointError(f"{folder} holds no checkpoint. Give a folder that `byhand train` made.")


def require_readable(folder: Path) -> None:
    """Raise CheckpointError unless this is a folder whose files can be listed and opened."""
    if os.path.isfile(folder):
        if folder.suffix in FOREIGN:
            raise _foreign(folder if folder.suffix == ".gguf" else folder.parent)
        raise CheckpointError(f"{folder} is a file, not a run. Give the folder that `byhand train` made.")
    if not os.path.isdir(folder):
        raise CheckpointError(
            f"there is no run {folder}. Check the path, or start one with `byhand train --out {command(folder)}`."
        )
    try:
        os.listdir(folder)
        os.stat(os.path.join(folder, os.curdir))
    except OSError as error:
        raise CheckpointError(f"cannot read {folder}: {reason(error)}. Check its permissions.") from None
    names = set(_names(folder))
    own = {MANIFEST, STATE} & names or step_of(folder.name) is not None or _holds_a_run(folder)
    weights = any(name.endswith(FOREIGN) for name in names)
    if not own and (("config.json" in names and weights) or any(name.endswith(".gguf") for name in names)):
        raise _foreign(folder)


class ForeignModelError(CheckpointError):
    """A path holds a model of another program, and no run."""


def _foreign(path: Path) -> ForeignModelError:
    run = os.path.join("runs", path.stem if path.suffix == ".gguf" else path.resolve().name)
    make = command("byhand", "import", path, "--out", run)
    return ForeignModelError(
        f"{path} is a model of another program. Make a run of it with `{make}`, and give {run} here."
    )


def run_of(folder: Path) -> Path:
    """Return the run of a checkpoint; a run, or a checkpoint copied elsewhere, is returned as it is."""
    place = folder.resolve()
    return place.parent if is_checkpoint(folder) and place in checkpoints(place.parent) else folder


def require_free(run: Path, use: str = "`byhand train --resume {}` resumes it") -> None:
    """Raise CheckpointError unless the folder is absent, empty, or a run of byhand without a checkpoint.

    use  what to do with an existing run
    """
    try:
        names = sorted(os.listdir(run))
    except FileNotFoundError:
        if run.is_symlink():
            raise CheckpointError(
                f"{run} is a link that leads nowhere. Remove it, or choose another folder with --out."
            ) from None
        return
    except OSError as error:
        raise CheckpointError(f"cannot use {run}: {reason(error)}. Choose another folder with --out.") from None
    except ValueError as error:  # a NUL in the name
        raise CheckpointError(f"cannot use {str(run)!r}: {error}. Choose another folder with --out.") from None
    steps = [name for name in names if step_of(name) is not None]
    mark = _mark(run)
    if any(map(_is_sealed, checkpoints(run))):
        raise CheckpointError(
            f"{run} holds a run already. Choose another folder with --out; {use.format(command(run))}."
        )
    if mark == MARK and steps:
        raise CheckpointError(
            f"{run} holds {steps[-1]}, which is not a whole checkpoint. Choose another folder with --out."
        )
    cut_short = names == [MARKER] and mark is not None and MARK.startswith(mark)
    if names and not (mark == MARK or cut_short):
        raise CheckpointError(
            f"{run} holds {names[0]!r} and is not a run of byhand. Choose a new or empty folder with --out."
        )


def begin(run: Path) -> None:
    """Make a folder a run; CheckpointError if it is not free or cannot be written."""
    try:
        run.mkdir(parents=True, exist_ok=True)
        require_free(run)
        if _mark(run) != MARK:
            (run / MARKER).unlink(missing_ok=True)  # a kill cut it short
            with suppress(FileExistsError):  # another process begins here too: the lock will tell
                write_new(run / MARKER, [MARK])
    except OSError as error:
        raise CheckpointError(
            f"cannot use {run}: {reason(error)} ({error.filename}). Check its permissions and the free space, "
            f"or choose another folder with --out."
        ) from None


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _mark(folder: Path) -> bytes | None:
    """Return the marker's bytes, or None without one."""
    try:
        return None if (folder / MARKER).is_symlink() else read_regular(folder / MARKER, len(MARK))
    except OSError:
        return None


def _holds_a_run(folder: Path) -> bool:
    return _mark(folder) == MARK or any(step_of(name) is not None for name in _names(folder))


def is_sealed(folder: Path) -> bool:
    """Return whether this version of byhand wrote the manifest, by its form; hashes are not checked."""
    match = SEALED.fullmatch(manifest_of(folder))
    return match is not None and match[1] == b"1"


def manifest_of(folder: Path) -> bytes:
    """Return the manifest's bytes, b"" without one that can be read."""
    try:
        return read_regular(folder / MANIFEST, SMALL)
    except OSError:
        return b""


def _is_sealed(folder: Path) -> bool:
    """Return whether a manifest has the form of any version of byhand."""
    return bool(SEALED.fullmatch(manifest_of(folder)))
