"""One checkpoint on disk: its files, read within the sizes that its config allows, and verified."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from byhand.config import TrainConfig, from_dict
from byhand.errors import ByhandError, CheckpointError, DataError, UnknownCheckpointError, brief
from byhand.files.parts import Assembly
from byhand.files.reading import SMALL, parse_json
from byhand.files.run_folder import MANIFEST, MODEL, STEPS, step_of
from byhand.files.sealed import Sealed, newer
from byhand.files.tensor_file import MOST_OF_PARTS, parts, sizes, tensors
from byhand.memory import physical
from byhand.model import declared, parameter_shapes
from byhand.optim import by_muon
from byhand.runs.contents import AVERAGE, CONFIG, DIGEST, OPTIMIZER, OURS, STATE, TOKENIZER, Checkpoint, part_files
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.registry import MOST as LARGEST_TOKENIZER
from byhand.tokenizers.registry import restored
from byhand.tokenizers.tokenizer import Tokenizer

_known: set[tuple[object, ...]] = set()  # signatures of checkpoints that this process wrote or verified


def remember(path: Path) -> None:
    """Take a checkpoint for whole as long as its files stay as they are: this process wrote it."""
    _known.add(_signature(path))


def forget(path: Path) -> None:
    """Drop what is known of a checkpoint that is about to go."""
    _known.discard(_signature(path))


def defect(checkpoint: Path) -> CheckpointError | None:
    """Return why a checkpoint cannot be loaded, an UnknownCheckpointError if it may be whole; None if it can."""
    try:
        if _signature(checkpoint) not in _known:
            read(checkpoint)
    except CheckpointError as error:
        return error
    return None


def read(path: Path, moments: bool = True) -> Checkpoint:
    """Return a checkpoint with all parts verified and consistent; without moments only their file's size is."""
    before = _signature(path)
    sealed = Sealed(path, (CONFIG, STATE), OURS)
    config, state = _settings(sealed)
    step, shapes, dtype = state["step"], parameter_shapes(config.model), config.array_dtype
    without_v = by_muon(config.optim, declared(config.model))
    both = {f"{k}.{n}": s for k in "mv" for n, s in shapes.items() if k == "m" or n not in without_v}
    due = {MODEL: shapes, OPTIMIZER: both} | ({AVERAGE: shapes} if config.optim.ema else {})
    files = {whole: part_files(sealed.names, whole) for whole in due}
    for whole in due:
        if not files[whole]:
            raise CheckpointError(f"{path} is damaged: {MANIFEST} does not name {whole}, or not all parts of it.")
    held = {whole: sum(map(sealed.size, names)) for whole, names in files.items()}
    if step == 0:  # before the first update, files of moments and averages may hold none
        due |= {whole: {} for whole in due.keys() - {MODEL} if held[whole] < sizes(due[whole], dtype)[0]}
    for whole, part in due.items():
        fewest, most = sizes(part, dtype)
        if files[whole] != [whole]:
            most += len(files[whole]) * MOST_OF_PARTS
        if not fewest <= held[whole] <= most:
            raise CheckpointError(
                f"{path} is damaged: {', '.join(files[whole][:2])} {'have' if len(files[whole]) > 1 else 'has'} "
                f"{held[whole]:,} bytes, but by {CONFIG} its arrays alone have {fewest - 8:,}."
            )
    if (have := physical()) is not None and sum(held.values()) > have:
        raise UnknownCheckpointError(
            f"{path} holds more than this machine's memory of {have / 1e9:.1f} GB. Use a larger one."
        )
    if not moments:
        del due[OPTIMIZER]
    found = {whole: _arrays(sealed, files[whole], part, dtype) for whole, part in due.items()}
    kept = found.get(OPTIMIZER, {})
    if any((array < 0).any() for name, array in kept.items() if name.startswith("v.")):
        raise CheckpointError(f"{path} is damaged: a mean of squared gradients is negative.")
    tokenizer = _tokenizer(sealed, config.model.vocab_size)
    if state.get(DIGEST, tokenizer.digest) != tokenizer.digest:
        raise CheckpointError(f"{path} is damaged: {TOKENIZER} is not of the tokenizer that the run began with.")
    if moments:
        _known.add(before)
    m, v = ({n: kept[f"{k}.{n}"] for n in shapes if f"{k}.{n}" in kept} for k in "mv")
    return Checkpoint(config, found[MODEL], m, v, state, path, tokenizer, found.get(AVERAGE, {}))


def _settings(sealed: Sealed) -> tuple[TrainConfig, dict[str, Any]]:
    """Return the config and the trainer's state."""
    try:
        config = from_dict(TrainConfig, parse_json(sealed.read(CONFIG, SMALL).tobytes()), CONFIG)
        state = parse_json(sealed.read(STATE, SMALL).tobytes())
        step, text = state["step"], state["text"]
    except CheckpointError:
        raise
    except (ValueError, TypeError, KeyError, ByhandError) as error:
        raise newer(sealed.path, brief(error, 200)) from None
    if type(step) is not int or not 0 <= step < STEPS or not isinstance(text, dict):
        raise CheckpointError(f"{sealed.path} is damaged: {STATE} is not one of a trainer.")
    if step_of(sealed.path.resolve().name) not in (None, step):
        raise CheckpointError(f"{sealed.path} is not what its name says: {STATE} is of step {step}.")
    return config, state


def _arrays(
    sealed: Sealed, files: list[str], shapes: Mapping[str, tuple[int, ...]], dtype: str
) -> dict[str, np.ndarray]:
    """Return the arrays of one file, or of parts; CheckpointError unless each element is there once."""
    most, name = sizes(shapes, dtype)[1], files[0]
    try:
        if len(files) == 1:
            return tensors(sealed.read(name, most), shapes, dtype)
        assembly = Assembly(shapes, dtype)
        for name in files:
            for key, part in parts(sealed.read(name, most + MOST_OF_PARTS), shapes, dtype).items():
                assembly.put(key, part)
        assembly.require_whole()
    except ValueError as error:
        raise CheckpointError(f"{sealed.path} is damaged: {name}: {brief(error, 200)}.") from None
    return assembly.arrays


def _tokenizer(sealed: Sealed, vocab_size: int) -> Tokenizer:
    """Return the tokenizer of a checkpoint; without a file of it, tokens are bytes."""
    if TOKENIZER not in sealed.names:
        return BYTES
    content = sealed.read(TOKENIZER, LARGEST_TOKENIZER).tobytes()
    try:
        tokenizer = restored(content)
        tokenizer.require_vocabulary(vocab_size)
    except DataError as error:
        raise CheckpointError(f"{sealed.path} is damaged: {TOKENIZER}: {brief(error, 200)}.") from None
    return tokenizer


def _signature(path: Path) -> tuple[object, ...]:
    """Return identities, sizes and times of the files: writing one changes it."""
    found: list[object] = [path.name]
    try:
        for name in sorted(filter(OURS.fullmatch, os.listdir(path))):
            status = os.stat(path / name)
            found += [name, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]
    except OSError:
        return (path, None)
    return tuple(found)
