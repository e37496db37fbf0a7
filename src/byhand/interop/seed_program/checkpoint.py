"""The original program's checkpoint: settings in PREFIX.json, arrays in PREFIX.bin, float32, little-endian.

    PREFIX.bin   "BGPTCKPT", u32 version, u32 has-optimizer, u64 step, u32 number of arrays,
                 each array as u64 count and data, in the order of `parameter_shapes`;
                 with optimizer: u64 t, then m and v of each array in that order, without counts

Saving a loaded file again gives the same bytes. The format has no checksum: sizes, shapes and steps must agree, and
every number must be finite. Each file is written under a temporary name and renamed, the JSON last.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import ByhandError, CheckpointError, DataError, brief, reason
from byhand.files.reading import SMALL, open_regular, parse_json, read_regular
from byhand.files.weights import OpenFile
from byhand.files.writing import write_new
from byhand.interop.foreign import Foreign
from byhand.interop.seed_program.binary import HEADER, MAGIC, VERSION, WRITING, Reader
from byhand.interop.seed_program.parameters import require_seed_model
from byhand.model import TinyGPT, parameter_shapes
from byhand.optim import AdamW

FORMAT = "build-llm-using-cpp-checkpoint"
SHAPE = ("vocab_size", "seq_len", "d_model", "n_layers")
SETTINGS = ("lr", "beta1", "beta2", "eps", "weight_decay")
LARGEST = float(np.finfo(np.float32).max)


@dataclass
class SeedCheckpoint:
    """A model and its optimizer, as saved by the original program.

    step           updates made before it was saved
    has_optimizer  whether it holds the optimizer's t, m and v; without them they start at zero
    """

    model: TinyGPT
    optimizer: AdamW
    step: int
    has_optimizer: bool = True


def prepare(prefix: str) -> None:
    """Make the checkpoint's folder before training, to fail at once if saving is impossible."""
    folder = Path(prefix).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"cannot make the folder {folder}: {reason(error)}. Use another --save.") from None
    if Path(prefix).name in ("", "..") or not os.access(folder, os.W_OK):
        raise CheckpointError(f"cannot save as {prefix!r}. Use a --save PREFIX in a folder that you may write to.")
    _require_own(prefix)


def _require_own(prefix: str) -> None:
    """Raise CheckpointError if saving would replace a file that is not a checkpoint of the original program."""
    for path, is_own in ((f"{prefix}.bin", _is_binary), (f"{prefix}.json", _is_settings)):
        if os.path.lexists(path) and not is_own(path):
            raise CheckpointError(
                f"{path} exists and is not a checkpoint of the original program. Use another --save."
            )


def _is_binary(path: str) -> bool:
    with suppress(OSError), os.fdopen(open_regular(path), "rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return False


def _is_settings(path: str) -> bool:
    with suppress(OSError, ValueError):
        found = parse_json(read_regular(path, SMALL))
        return isinstance(found, dict) and found.get("format") == FORMAT
    return False


def save(prefix: str, checkpoint: SeedCheckpoint) -> None:
    """Write PREFIX.json and PREFIX.bin.

    Raises ConfigError if the model has a setting that the original program does not know, CheckpointError if it is
    float64 or the files cannot be written; existing files then stay unchanged.
    """
    require_seed_model(checkpoint.model.config)
    if str(checkpoint.model.dtype) != "float32":
        raise CheckpointError(
            f"the model is {checkpoint.model.dtype}, but the original program's files hold float32."
        )
    contents = {f"{prefix}.bin": b"".join(_binary(checkpoint)), f"{prefix}.json": _settings_text(checkpoint).encode()}
    staged = {Path(path + WRITING): Path(path) for path in contents}
    _require_own(prefix)
    try:
        for place, content in zip(staged, contents.values(), strict=True):
            place.unlink(missing_ok=True)  # from an interrupted save
            write_new(place, [content])
        for place, path in staged.items():
            place.replace(path)
    except OSError as error:
        for place in staged:
            with suppress(OSError):
                place.unlink()
        raise CheckpointError(
            f"cannot write {error.filename2 or error.filename}: {reason(error)}. Check its folder and the space."
        ) from None


def load(prefix: str) -> SeedCheckpoint:
    """Read PREFIX.json and PREFIX.bin. Raises CheckpointError if they are missing, damaged or not a pair."""
    settings = _settings(prefix)
    try:
        config = ModelConfig(**{key: settings[key] for key in SHAPE})
        optimizer = AdamW(
            settings["lr"], (settings["beta1"], settings["beta2"]), settings["eps"], settings["weight_decay"]
        )
    except ByhandError as error:
        raise CheckpointError(f"{prefix}.json: {error}") from None
    shapes = parameter_shapes(config)
    try:
        with OpenFile(Path(f"{prefix}.bin")) as file:
            reader = Reader(file, settings, shapes)
            arrays = {name: reader.counted_array(name, shape) for name, shape in shapes.items()}
            if settings["has_optim_state"]:
                optimizer.t, (m, v) = reader.integer(), map(optimizer.moments.__getitem__, "mv")
                for name, shape in shapes.items():
                    m[name] = reader.array(f"m of {name}", shape)
                    v[name] = reader.array(f"v of {name}", shape)
                    if (v[name] < 0).any():
                        raise file.damaged(f"v of {name} is negative")
    except DataError as error:
        raise CheckpointError(str(error)) from None
    return SeedCheckpoint(TinyGPT(config, arrays=arrays), optimizer, settings["step"], settings["has_optim_state"])


def read(path: Path) -> Foreign:
    """Return the model of PREFIX.bin, described by PREFIX.json."""
    model = load(str(path.with_suffix(""))).model
    return Foreign("the original program", model.config, {name: p.data for name, p in model.parameters().items()})


def single(value: float) -> float:
    """Return the float32 number nearest to `value`: the precision of the original program's settings."""
    return float(np.float32(value))


def _binary(checkpoint: SeedCheckpoint) -> Iterator[bytes]:
    optimizer, parameters = checkpoint.optimizer, checkpoint.model.parameters()
    yield HEADER.pack(MAGIC, VERSION, checkpoint.has_optimizer, checkpoint.step, len(parameters))
    for parameter in parameters.values():
        yield struct.pack("<Q", parameter.data.size)
        yield _bytes(parameter.data)
    if checkpoint.has_optimizer:
        yield struct.pack("<Q", optimizer.t)
        for name, parameter in parameters.items():
            for moments in map(
                optimizer.moments.__getitem__, "mv"
            ):  # before the first step an optimizer has none: zeros
                yield _bytes(moments.get(name, np.zeros_like(parameter.data)))


def _bytes(array: np.ndarray) -> bytes:
    return array.astype("<f4").tobytes()


def _settings_text(checkpoint: SeedCheckpoint) -> str:
    """Return the JSON in the original program's layout: float32 values with twelve decimals."""
    config, optimizer = checkpoint.model.config, checkpoint.optimizer
    numbers = optimizer.lr, *(getattr(optimizer.settings, name) for name in SETTINGS[1:])
    entries = {
        "format": json.dumps(FORMAT),
        "version": VERSION,
        **{key: getattr(config, key) for key in SHAPE},
        **{key: f"{single(number):.12e}" for key, number in zip(SETTINGS, numbers, strict=True)},
        "step": checkpoint.step,
        "has_optim_state": json.dumps(checkpoint.has_optimizer),
    }
    return "{\n" + ",\n".join(f'  "{key}": {value}' for key, value in entries.items()) + "\n}\n"


def _settings(prefix: str) -> dict[str, Any]:
    """Read PREFIX.json and check the type and range of every entry."""
    path = f"{prefix}.json"
    try:
        settings = parse_json(read_regular(path, SMALL))
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {reason(error)}. --load takes the path without .json.") from None
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: not valid JSON: {brief(error)}. Use another copy.") from None
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of the original program: its format is not {FORMAT!r}.")
    if settings.get("version") != VERSION:
        raise CheckpointError(
            f"{path} has version {repr(settings.get('version'))[:80]}, but only {VERSION} is known."
        )
    kinds = dict.fromkeys((*SHAPE, "step"), int) | dict.fromkeys(SETTINGS, float) | {"has_optim_state": bool}
    for key, kind in kinds.items():
        value: Any = settings.get(key)
        fits = type(value) in (int, float) and value < LARGEST if kind is float else type(value) is kind
        if not fits or not 0 <= value < LARGEST:
            raise CheckpointError(f"{path} is damaged: {key} is {repr(value)[:80]}. Use another copy.")
        settings[key] = single(value) if kind is float else value
    return settings
