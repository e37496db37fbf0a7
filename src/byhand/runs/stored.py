"""One checkpoint on disk: its files, read within the sizes that its config allows, and verified."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byhand.config import TrainConfig, from_dict
from byhand.errors import ByhandError, CheckpointError, DataError, UnknownCheckpointError, brief
from byhand.files.parts import Assembly
from byhand.files.reading import SMALL, parse_json
from byhand.files.run_folder import MANIFEST, MODEL, STEPS, step_of
from byhand.files.sealed import Sealed, newer
from byhand.files.tensor_file import MOST_OF_PARTS, parts, sizes, tensors
from byhand.memory import physical
from byhand.runs.contents import (
    AVERAGE,
    BASE,
    CONFIG,
    DIGEST,
    OPTIMIZER,
    OURS,
    STATE,
    TOKENIZER,
    Checkpoint,
    due,
    may_be_empty,
    part_files,
)  # fmt: skip
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.registry import MOST as LARGEST_TOKENIZER
from byhand.tokenizers.registry import restored
from byhand.tokenizers.tokenizer import Tokenizer
from byhand.update_rules import by_kind, state_of, updates

_known: set[tuple[object, ...]] = set()  # signatures of checkpoints that this process wrote or verified


def remember(path: Path) -> None:
    """Trust a checkpoint that this process wrote as long as its files do not change."""
    _known.add(_signature(path))


def forget(path: Path) -> None:
    """Stop trusting a checkpoint that is about to be removed."""
    _known.discard(_signature(path))


def defect(checkpoint: Path) -> CheckpointError | None:
    """Return why a checkpoint cannot be loaded, an UnknownCheckpointError if it may be whole; None if it can."""
    try:
        if _signature(checkpoint) not in _known:
            read(checkpoint)
    except CheckpointError as error:
        return error
    return None


def settings(path: Path) -> tuple[TrainConfig, dict[str, Any]]:
    """Return the config and the trainer's state of a checkpoint, whose arrays are not read."""
    return _settings(Sealed(path, (CONFIG, STATE), OURS))


def read(path: Path, moments: bool = True, unread: bool = False) -> Checkpoint:
    """Return a checkpoint with all parts verified and consistent; without moments, only their file's size is.

    unread  leave the weights in their files (`Unread`), except those of a run with adapters, or of several hosts
    """
    before = _signature(path)
    sealed = Sealed(path, (CONFIG, STATE), OURS)
    config, state = _settings(sealed)
    step, dtype, arrays = state["step"], config.array_dtype, due(config)
    files = {whole: part_files(sealed.names, whole) for whole in arrays}
    for whole in arrays:
        if not files[whole]:
            raise CheckpointError(f"{path} is damaged: {MANIFEST} does not name {whole}, or not all parts of it.")
    held = {whole: sum(map(sealed.size, names)) for whole, names in files.items()}
    for whole in arrays:
        if may_be_empty(whole, step) and held[whole] < sizes(arrays[whole], dtype)[0]:
            arrays[whole] = {}
    for whole, part in arrays.items():
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
        del arrays[OPTIMIZER]
    unread = unread and not config.model.lora
    found = {
        whole: _arrays(sealed, files[whole], part, dtype, unread and whole != OPTIMIZER)
        for whole, part in arrays.items()
    }
    kept = by_kind(found.get(OPTIMIZER, {}))
    for symbol in {symbol for equation in updates() for symbol in state_of(equation) if symbol.nonnegative}:
        if any((array < 0).any() for array in kept.get(symbol.name, {}).values()):
            raise CheckpointError(f"{path} is damaged: a {symbol.meaning} is negative.")
    tokenizer = _tokenizer(sealed, config.model.vocab_size)
    if state.get(DIGEST, tokenizer.digest) != tokenizer.digest:
        raise CheckpointError(f"{path} is damaged: {TOKENIZER} is not the tokenizer that the run began with.")
    if moments:
        _known.add(before)
    parameters = found.get(BASE, {}) | found[MODEL]
    return Checkpoint(config, parameters, kept, state, path, tokenizer, found.get(AVERAGE, {}))


def _settings(sealed: Sealed) -> tuple[TrainConfig, dict[str, Any]]:
    """Return the config and the trainer's state."""
    try:
        config = from_dict(TrainConfig, parse_json(sealed.read(CONFIG, SMALL)), CONFIG)
        state = parse_json(sealed.read(STATE, SMALL))
        step, text = state["step"], state["text"]
    except CheckpointError:
        raise
    except (ValueError, TypeError, KeyError, ByhandError) as error:
        raise newer(sealed.path, brief(error, 200)) from None
    counts = (step, text.get("training_documents", 0)) if isinstance(text, dict) else ()
    if not counts or not all(type(n) is int and n >= 0 for n in counts) or step >= STEPS:
        raise CheckpointError(f"{sealed.path} is damaged: {STATE} is not a trainer's state.")
    if step_of(sealed.path.resolve().name) not in (None, step):
        raise CheckpointError(f"{sealed.path} does not match its name: {STATE} is from step {step}.")
    return config, state


def _arrays(
    sealed: Sealed, files: list[str], shapes: Mapping[str, tuple[int, ...]], dtype: str, unread: bool
) -> dict[str, Any]:
    """Return the arrays of one file, or of parts; CheckpointError unless each element is there once."""
    most, name = sizes(shapes, dtype)[1], files[0]
    try:
        if len(files) == 1:
            with sealed.reading(name, most) as (read, size, again):
                return tensors(read, size, shapes, dtype, again() if unread else None)
        assembly = Assembly(shapes, dtype)
        for name in files:
            with sealed.reading(name, most + MOST_OF_PARTS) as (read, size, _):
                for key, part in parts(read, size, shapes, dtype).items():
                    assembly.put(key, part)
        assembly.require_whole()
    except ValueError as error:
        raise CheckpointError(f"{sealed.path} is damaged: {name}: {brief(error, 200)}.") from None
    return assembly.arrays


def _tokenizer(sealed: Sealed, vocab_size: int) -> Tokenizer:
    """Return the tokenizer of a checkpoint; without a file of it, tokens are bytes."""
    if TOKENIZER not in sealed.names:
        return BYTES
    content = sealed.read(TOKENIZER, LARGEST_TOKENIZER)
    try:
        tokenizer = restored(content)
        tokenizer.require_vocabulary(vocab_size)
    except DataError as error:
        raise CheckpointError(f"{sealed.path} is damaged: {TOKENIZER}: {brief(error, 200)}.") from None
    return tokenizer


def _signature(path: Path) -> tuple[object, ...]:
    """Return identities, sizes and times of the files, which writing to one changes."""
    found: list[object] = [path.name]
    try:
        for name in sorted(filter(OURS.fullmatch, os.listdir(path))):
            status = os.stat(path / name)
            found += [name, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]
    except OSError:
        return (path, None)
    return tuple(found)
