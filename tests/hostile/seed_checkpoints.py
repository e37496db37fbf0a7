"""The original program's files, damaged or forged: refused in one line, or saved again to the same numbers."""

from __future__ import annotations

import random
import re
import shutil
import struct
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import CheckpointError
from byhand.interop.seed_program import checkpoint as files
from byhand.interop.seed_program.training import start
from hostile.bytes import damaged

SIZES = ["0", "1", "-1", "12", "1e9", "10000000000", "9" * 400, "9" * 5000, "true", '"8"', "2.0", "[]", "1e400"]


@cache
def pristine() -> tuple[bytes, bytes]:
    """Return the .json and .bin of a small checkpoint with moments."""
    checkpoint = start(ModelConfig(vocab_size=11, seq_len=4, d_model=4), 0.01, seed=1)
    checkpoint.step = checkpoint.optimizer.t = 3
    for name, parameter in checkpoint.model.parameters().items():
        checkpoint.optimizer.moments["m"][name] = np.full_like(parameter.data, 0.25)
        checkpoint.optimizer.moments["v"][name] = np.full_like(parameter.data, 0.5)
    with tempfile.TemporaryDirectory() as folder:
        files.save(f"{folder}/x", checkpoint)
        return Path(folder, "x.json").read_bytes(), Path(folder, "x.bin").read_bytes()


def attack(seed: int, folder: Path) -> None:
    """Damage a pair of files as the seed says and load it; AssertionError if that goes otherwise than it should."""
    chance = random.Random(seed)
    settings, binary = pristine()
    match chance.randrange(4):
        case 0:
            settings = damaged(settings, chance)
        case 1:
            binary = damaged(binary, chance)
        case 2:
            key = chance.choice(
                [b"vocab_size", b"seq_len", b"d_model", b"n_layers", b"step", b"lr", b"beta2", b"eps"]
            )
            value = chance.choice(SIZES).encode()
            settings = re.sub(b'"' + key + rb'": [^,\n]+', lambda _: b'"' + key + b'": ' + value, settings)
        case 3:
            at = chance.choice([8, 12, 16, 24, 28, 36, 4 * chance.randrange(len(binary) // 4)])
            value = chance.choice([0, 1, 2**31, 2**32 - 1, 0x7FC00000, 0x7F800000, 0xFF800000, 0xBF800000, 20])
            binary = binary[:at] + struct.pack("<I", value) + binary[at + 4 :]
    place = folder / f"seed-{seed}"
    place.mkdir()
    try:
        (place / "x.json").write_bytes(settings)
        (place / "x.bin").write_bytes(binary)
        _load(place, binary)
    except AssertionError as error:
        raise AssertionError(f"seed checkpoint of seed {seed}: {error}") from error
    finally:
        shutil.rmtree(place)


def _load(place: Path, binary: bytes) -> None:
    try:
        loaded = files.load(str(place / "x"))
    except CheckpointError as error:
        line = str(error)
        assert line.isprintable(), f"not one line: {line!r}"
        assert len(line) < 1000, "the line is too long"
        return
    except Exception as error:
        raise AssertionError(f"a traceback: {type(error).__name__}: {str(error)[:200]}") from error
    for name, parameter in loaded.model.parameters().items():
        assert np.isfinite(parameter.data).all(), f"{name} is not finite"
    assert all((v >= 0).all() for v in loaded.optimizer.moments["v"].values()), "negative v"
    files.save(str(place / "y"), loaded)
    assert (place / "y.bin").read_bytes() == binary, "saved again it is another file"
