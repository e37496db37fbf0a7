"""Checkpoints: a directory that is whole or absent.

    RUN/step-00001000/  model.safetensors  config.json  optimizer.safetensors  trainer_state.json  manifest.json
    RUN/latest          the name of the newest one

A checkpoint is written into a temporary directory beside its place, every file and both directories are synced,
and only then is it renamed. The manifest, written last, has size and SHA-256 of each file; nothing is read without
it. Older checkpoints go only after a newer one is safe.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as read_safetensors
from safetensors.numpy import save as write_safetensors

from byhand.config import TrainConfig, from_dict, to_dict
from byhand.errors import ByhandError, CheckpointError
from byhand.model import TinyGPT

MODEL, CONFIG, OPTIMIZER, STATE = "model.safetensors", "config.json", "optimizer.safetensors", "trainer_state.json"
FILES = (MODEL, CONFIG, OPTIMIZER, STATE)
MANIFEST, LATEST, TEMPORARY = "manifest.json", "latest", ".writing-"
FORMAT = {"format": "byhand-checkpoint", "version": 1}
RETRIES = 5


@dataclass
class Checkpoint:
    """Everything that a run needs to go on: settings, parameters, moments by name, and the trainer's own state."""

    config: TrainConfig
    parameters: Mapping[str, np.ndarray]
    m: Mapping[str, np.ndarray]
    v: Mapping[str, np.ndarray]
    state: dict[str, Any]
    path: Path | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def step(self) -> int:
        """The number of updates made."""
        return self.state["step"]

    def model(self) -> TinyGPT:
        """Return the model; CheckpointError if the arrays do not have the shapes that the config says."""
        try:
            return TinyGPT(self.config.model, arrays=self.parameters)
        except ByhandError as error:
            raise CheckpointError(f"{self.path or 'the checkpoint'}: {error}") from None


def save(run: Path, checkpoint: Checkpoint, keep: int = 2) -> Path:
    """Write a checkpoint into the run folder and return its path; the older ones stay whole whatever happens.

    Raises CheckpointError if it cannot be written, for example because the disk is full.
    """
    final = run / f"step-{checkpoint.step:08d}"
    moments = {f"{k}.{n}": a for k, part in (("m", checkpoint.m), ("v", checkpoint.v)) for n, a in part.items()}
    contents = {
        MODEL: write_safetensors(_contiguous(checkpoint.parameters)),
        CONFIG: _json(to_dict(checkpoint.config)),
        OPTIMIZER: write_safetensors(_contiguous(moments)),
        STATE: _json(checkpoint.state),
    }
    manifest = {name: {"bytes": len(c), "sha256": sha256(c).hexdigest()} for name, c in contents.items()}
    contents[MANIFEST] = _json({**FORMAT, "files": manifest})
    temporary = run / f"{TEMPORARY}{final.name}"
    try:
        run.mkdir(parents=True, exist_ok=True)
        _remove_temporary(run)
        if final.exists() and not defect(final):
            return final  # the same step of the same run, whole already
        temporary.mkdir()
        for name, content in contents.items():
            _write_synced(temporary / name, content)
        _sync_folder(temporary)
        if final.exists():
            shutil.rmtree(final)
        temporary.rename(final)
        _sync_folder(run)
        _write_synced(run / f"{TEMPORARY}{LATEST}", f"{final.name}\n".encode())
        (run / f"{TEMPORARY}{LATEST}").replace(run / LATEST)
        _sync_folder(run)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        older = newest_whole(run)
        rest = f"{older.name} is still whole" if older else "there is no older checkpoint"
        raise CheckpointError(
            f"cannot write {final}: {error.strerror}; {rest}. Free some space and resume."
        ) from None
    _prune(final, keep)
    return final


def load(run: Path) -> Checkpoint:
    """Return the newest whole checkpoint of a run folder (or the one that the path itself names).

    A damaged one is passed over with a warning in `.warnings`. Raises CheckpointError if none is whole.
    """
    if not run.exists():
        raise CheckpointError(f"there is no run {run}. Check the path, or start one with `byhand train --out {run}`.")
    if is_checkpoint(run):
        return _read(run, _verified(run))
    warnings: list[str] = []
    for _ in range(RETRIES):
        listed = _candidates(run)
        warnings.clear()
        for candidate in listed:
            try:
                checkpoint = _read(candidate, _verified(candidate))
            except CheckpointError as error:
                warnings.append(str(error))
                continue
            checkpoint.warnings = [f"{w} Going on from {candidate.name}." for w in warnings]
            return checkpoint
        # A run that trains removes old checkpoints after writing newer ones: then the list has changed meanwhile.
        if _candidates(run) == listed:
            break
    if warnings:
        raise CheckpointError(f"{warnings[0]} No older one is whole; start again with `byhand train`.")
    raise CheckpointError(f"{run} holds no checkpoint. Give a folder that `byhand train` made.")


def load_model(run: str | Path) -> TinyGPT:
    """Return the model of a run's newest whole checkpoint. CheckpointError if there is none."""
    return load(Path(run)).model()


def is_checkpoint(path: Path) -> bool:
    """Return whether a path is one checkpoint of a run, and not a run."""
    return (path / MANIFEST).exists() or path.resolve().name.startswith("step-")


def defect(checkpoint: Path) -> str:
    """Return in a sentence what is wrong with a checkpoint directory; empty if it verifies."""
    try:
        _verified(checkpoint)
    except CheckpointError as error:
        return str(error)
    return ""


def _verified(path: Path) -> dict[str, bytes]:
    """Return the contents of a checkpoint's files, each read once and held against the manifest."""
    try:
        written = (path / MANIFEST).read_bytes()
        entries = json.loads(written)["files"]
        if written != _json({**FORMAT, "files": entries}) or set(entries) != set(FILES):
            raise CheckpointError(f"{path} is damaged: {MANIFEST} is not as it was written.")
        contents = {name: (path / name).read_bytes() for name in FILES}
        for name, content in contents.items():
            if len(content) != entries[name]["bytes"]:
                raise CheckpointError(
                    f"{path} is damaged: {name} has {len(content)} bytes, not {entries[name]['bytes']}."
                )
            if sha256(content).hexdigest() != entries[name]["sha256"]:
                raise CheckpointError(f"{path} is damaged: {name} does not have the SHA-256 of its manifest.")
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is not whole: {Path(str(error.filename)).name} is missing.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CheckpointError(f"{path} is damaged: {MANIFEST} cannot be understood.") from None
    return contents


def newest_whole(run: Path) -> Path | None:
    """Return the newest checkpoint that verifies, or None."""
    return next((c for c in _candidates(run) if not defect(c)), None)


def _read(path: Path, contents: Mapping[str, bytes]) -> Checkpoint:
    """Make a checkpoint of verified contents; CheckpointError if its parts do not belong together."""
    try:
        config = from_dict(TrainConfig, json.loads(contents[CONFIG]), CONFIG)
        state = json.loads(contents[STATE])
        parameters = read_safetensors(contents[MODEL])
        moments = read_safetensors(contents[OPTIMIZER])
        step, text = state["step"], state["text"]
    except (ValueError, TypeError, KeyError, SafetensorError, ByhandError) as error:
        said = str(error).rstrip(".")
        raise CheckpointError(f"{path} cannot be understood: {said}. Was it made by a newer version?") from None
    m, v = ({n[2:]: a for n, a in moments.items() if n.startswith(k)} for k in ("m.", "v."))
    arrays = {n: (a.shape, str(a.dtype)) for n, a in parameters.items()}
    named = path.resolve().name
    if not isinstance(step, int) or not isinstance(text, dict) or (_step(named) not in (None, step)):
        raise CheckpointError(f"{path} is not what its name says: {STATE} is of step {step}.")
    for what, part in (("m", m), ("v", v)):
        if step and {n: (a.shape, str(a.dtype)) for n, a in part.items()} != arrays:
            raise CheckpointError(f"{path} is damaged: the moments {what} do not match the parameters.")
    if any(dtype != config.array_dtype for _, dtype in arrays.values()):
        raise CheckpointError(f"{path} is damaged: the parameters are not {config.array_dtype}, as {CONFIG} says.")
    return Checkpoint(config, parameters, m, v, state, path)


def _step(name: str) -> int | None:
    """Return the step in a checkpoint's name, or None for any other name."""
    digits = name.removeprefix("step-")
    return int(digits) if name.startswith("step-") and digits.isdecimal() else None


def _candidates(run: Path) -> list[Path]:
    """List a run's checkpoints from new to old. (`latest` is for people: a kill can leave it one behind.)"""
    found = [p for p in run.glob("step-*") if _step(p.name) is not None and p.is_dir()]
    return sorted(found, key=lambda p: _step(p.name) or 0, reverse=True)


def _prune(written: Path, keep: int) -> None:
    """Keep the checkpoint just written and the newest older ones, `keep` in all; failing to remove does no harm."""
    not_newer = [p for p in _candidates(written.parent) if (_step(p.name) or 0) <= (_step(written.name) or 0)]
    for old in not_newer[keep:]:
        (old / MANIFEST).unlink(missing_ok=True)  # first, so that a half-removed one is never taken for whole
        shutil.rmtree(old, ignore_errors=True)


def _remove_temporary(run: Path) -> None:
    for path in run.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _contiguous(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Copy views into row-major arrays: the NumPy writer of safetensors stores a transposed view scrambled."""
    return {name: np.ascontiguousarray(a) for name, a in arrays.items()}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Make a rename durable; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
