"""Checkpoints: a directory that is whole or absent.

    RUN/step-00001000/  model.safetensors  config.json  optimizer.safetensors  trainer_state.json  manifest.json
                        and tokenizer.json, unless tokens are bytes, and average.safetensors with --ema;
                        with --lora base.safetensors, the frozen weights: a hard link to the one before;
                        where several hosts train, each writes
                        model-00001-of-00004.safetensors and the like, with its parts of the arrays
    RUN/latest          the name of the newest one

Saving writes into a temporary directory next to the final one, syncs every file and both directories, and renames.
The manifest, written last, has size and SHA-256 of each file; loading requires it, and refuses files larger than the
config allows. Older checkpoints are removed only after a newer one is safe.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from byhand.errors import ByhandError, CheckpointError, UnknownCheckpointError, reason
from byhand.files import run_folder
from byhand.files.reading import read_regular
from byhand.files.removal import in_the_way, remove, remove_files, remove_left_over, set_aside
from byhand.files.sealed import Content, entries, entry_of, manifest
from byhand.files.writing import TEMPORARY, remedy, replace, sync, write_new
from byhand.model import TinyGPT
from byhand.runs.contents import OURS, PARTS_OF_BASE, Checkpoint, contents
from byhand.runs.stored import defect, forget, read, remember

log = logging.getLogger(__name__)
LATEST = "latest"
RETRIES = 1000  # each lost a race with a save; a reader slower than the run's saves succeeds when the run ends


def save(run: Path, checkpoint: Checkpoint, keep: int = 2) -> Path:
    """Write a checkpoint into the run folder and return its path; the older ones stay whole whatever happens.

    Raises CheckpointError if it cannot be written, for example because the disk is full, and DataError if its
    tokenizer cannot be stored or has another vocabulary.
    """
    own = contents(checkpoint)
    writing = Writing(run, checkpoint, keep)
    if writing.begin(manifest(entries(own))):
        try:
            writing.write(own)
            writing.finish()
        except ByhandError:
            writing.abandon()
            raise
    return writing.final


class Writing:
    """Writes a checkpoint: begin, write, finish. If there are several hosts, all write; the first does the rest.

    keep  how many whole checkpoints stay, besides the best one
    """

    def __init__(self, run: Path, made: Checkpoint, keep: int) -> None:
        self.run, self.step, self.keep, self.best = run, made.step, keep, made.best and made.best[0]
        self.final = run / run_folder.name_of(made.step)
        self.temporary = run / f"{TEMPORARY}{self.final.name}"

    def begin(self, whole: bytes) -> bool:
        """Make the temporary folder for files with this manifest; return False if the step is saved already."""
        run, final = self.run, self.final
        self._manifest = whole
        with _explained(run, final):
            run.mkdir(parents=True, exist_ok=True)
            remove_left_over(run, OURS)
            if final.exists():
                error = defect(final)
                if isinstance(error, UnknownCheckpointError):
                    raise error
                same = run_folder.manifest_of(final) == whole
                if error is None and not same:
                    raise CheckpointError(f"{final} belongs to another run. Save into another folder.")
                if error is None:
                    return False
                if not same:
                    set_aside(final, OURS)
            require_way(run, range(self.step, self.step + 1))
            self.temporary.mkdir()
        return True

    def write(self, own: Mapping[str, Content]) -> None:
        """Write the files of this process."""
        with _explained(self.run, self.final):
            for name, content in own.items():
                if not (PARTS_OF_BASE.fullmatch(name) and self._linked(name, content)):
                    write_new(self.temporary / name, content)
            sync(self.temporary)

    def _linked(self, name: str, content: Content) -> bool:
        """Link the frozen weights of an older whole checkpoint if they are the same; return whether they were."""
        due = entries({name: content})[name]
        for older in run_folder.checkpoints(self.run):
            if entry_of(older, name) == due and not defect(older):
                with suppress(OSError):  # a file system without links gets a copy
                    os.link(older / name, self.temporary / name)
                    return True
        return False

    def finish(self) -> None:
        """Write the manifest, give the folder its name, and remove older checkpoints beyond `keep`."""
        run, final = self.run, self.final
        with _explained(run, final):
            write_new(self.temporary / run_folder.MANIFEST, [self._manifest])
            sync(self.temporary)
            remove(final, OURS)
            if (run / run_folder.METRICS).is_file():
                sync(run / run_folder.METRICS)  # so that a power cut loses no line before the checkpoint
            self.temporary.rename(final)
            sync(run)
            remember(final)
            _settle(final, self.keep, self.best)

    def abandon(self) -> None:
        """Remove the temporary folder after a failure."""
        remove_files(self.temporary, OURS)


@contextmanager
def _explained(run: Path, final: Path) -> Iterator[None]:
    """Turn an OSError of saving into one line."""
    try:
        yield
    except OSError as error:
        older = newest_whole(run)
        rest = f"{older.name} is still whole" if older else "there is no older checkpoint"
        raise CheckpointError(
            f"cannot write {str(error.filename2 or error.filename).replace(TEMPORARY + final.name, final.name)}: "
            f"{reason(error)}; {rest}. {remedy(error, run_folder.again_with(older))}"
        ) from None


def tidy(checkpoint: Checkpoint) -> None:
    """Finish saving a run's last checkpoint if a kill followed its rename; failing does no harm."""
    assert checkpoint.path
    with suppress(OSError):
        remove_left_over(checkpoint.path.parent, OURS)
        _settle(checkpoint.path, checkpoint.config.keep, checkpoint.best and checkpoint.best[0])


def _settle(final: Path, keep: int, best: int | None) -> None:
    """Let `latest` name the checkpoint just written, and remove older ones beyond `keep`."""
    if _is_own_latest(latest := final.with_name(LATEST)):
        replace(latest, [f"{final.name}\n".encode()])
    _prune(final, keep, best)


def require_way(run: Path, steps: Container[int]) -> None:
    """Raise CheckpointError if something blocks the path of a checkpoint of these steps.

    That is a link, a file, or a folder with a user's files, which byhand must not remove.
    """
    try:
        path = in_the_way(run, steps, OURS)
    except OSError as error:
        raise CheckpointError(f"cannot use {error.filename}: {reason(error)}. Check its permissions.") from None
    if path:
        again = run_folder.again_with(newest_whole(run))
        raise CheckpointError(f"{path} blocks a checkpoint, and byhand did not make it. Move it away, then {again}.")


def load(run: Path, moments: bool = True, unread: bool = False) -> Checkpoint:
    """Return the newest whole checkpoint of a run folder (or the one that the path itself names).

    moments  False leaves out m and v, two thirds of the bytes, which only training reads
    unread   leave the weights in their files, where a decoder takes them one by one (`files.unread.read` reads all)

    Skips a damaged one with a warning in the log. Raises CheckpointError if none is whole, or if a newer one may be
    whole but cannot be read here, or is of another version.
    """
    run_folder.require_readable(run)
    if run_folder.is_checkpoint(run):
        return read(run, moments, unread)
    warnings: list[str] = []
    for _ in range(RETRIES):
        listed = run_folder.checkpoints(run)
        warnings.clear()
        for candidate in listed:
            try:
                checkpoint = read(candidate, moments, unread)
            except UnknownCheckpointError:
                if run_folder.checkpoints(run) == listed:
                    raise  # it may be whole: resuming from an older one would lose it
                break
            except CheckpointError as error:
                warnings.append(str(error))
                continue
            for warning in warnings:
                log.warning("%s Going on from %s.", warning, candidate.name)
            return checkpoint
        # A running training removes old checkpoints after writing newer ones, which changes the list.
        if run_folder.checkpoints(run) == listed:
            break
    if warnings:
        raise CheckpointError(f"{warnings[0]} No older one is whole; start again with `byhand train`.")
    raise run_folder.without_checkpoint(run)


def load_model(run: str | Path) -> TinyGPT:
    """Return the model of a run's newest whole checkpoint. CheckpointError if there is none."""
    return load(Path(run), moments=False).model()


def newest_whole(run: Path) -> Path | None:
    """Return the newest checkpoint that can be loaded, or None."""
    return next((c for c in run_folder.checkpoints(run) if not defect(c)), None)


def _prune(written: Path, keep: int, best: int | None) -> None:
    """Keep the checkpoint just written and the newest older whole ones, `keep` in all, and the one of step `best`.

    Damaged ones do not count; those older than the kept ones are removed if they have byhand's manifest. Those of
    another version, or that cannot be read, stay. Failing to remove does no harm.
    """
    whole = 1
    step = run_folder.step_of(written.name) or 0
    for old in run_folder.checkpoints(written.parent):
        if (run_folder.step_of(old.name) or 0) >= step:
            continue
        if whole >= keep and run_folder.step_of(old.name) != best:
            forget(old)
            with suppress(OSError):
                if run_folder.is_sealed(old):
                    remove(old, OURS)
        elif whole < keep and not defect(old):
            whole += 1


def _is_own_latest(latest: Path) -> bool:
    """Return whether `latest` may be written; a user's own file or link of that name stays."""
    if not os.path.lexists(latest):
        return True
    with suppress(OSError):
        return (
            not latest.is_symlink()
            and run_folder.step_of(read_regular(latest, 100).decode(errors="replace").strip()) is not None
        )
    return False
