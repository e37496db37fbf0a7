"""Reading the original program's PREFIX.bin, within the size that its settings allow."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from byhand.errors import CheckpointError
from byhand.files.weights import OpenFile, Stored
from byhand.formats.registry import FLOAT32
from byhand.memory import physical

VERSION, MAGIC = 1, b"BGPTCKPT"
HEADER = struct.Struct("<8sIIQI")
WRITING = ".writing"  # suffix of a file until it is complete


class Reader:
    """PREFIX.bin, read sequentially; CheckpointError or DataError names the place of a mismatch.

    settings  of PREFIX.json, which the header must confirm
    shapes    of the arrays, by name
    """

    def __init__(self, file: OpenFile, settings: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.file = file
        self.place = 0
        count = sum(map(math.prod, shapes.values()))
        most = HEADER.size + 8 * len(shapes) + 4 * count + (8 + 8 * count) * settings["has_optim_state"]
        if file.size > most:
            raise CheckpointError(
                f"{file.path} is damaged: it has {file.size:,} bytes, but by its .json at most {most:,}. "
                f"Use another copy."
            )
        if (have := physical()) is not None and 2 * file.size > have:
            raise CheckpointError(
                f"{file.path} has {file.size / 1e9:.1f} GB, more than this machine's memory can take."
            )
        if file.read(0, min(len(MAGIC), file.size)).tobytes() != MAGIC:
            raise CheckpointError(
                f"{file.path} is not a checkpoint of the original program: it does not begin with BGPTCKPT."
            )
        _, version, has_optimizer, step, n_arrays = HEADER.unpack(self._take(HEADER.size))
        if version != VERSION:
            raise CheckpointError(f"{file.path} has version {version}, but only {VERSION} is known.")
        for what, here, there in (
            ("arrays", n_arrays, len(shapes)),
            ("step", step, settings["step"]),
            ("has_optim_state", has_optimizer, int(settings["has_optim_state"])),
        ):
            if here != there:
                raise CheckpointError(
                    f"{file.path} and its .json are not one checkpoint: {what} {here} and {there}. Use another copy, "
                    f"or after a save that was cut short rename .json{WRITING} to .json."
                )

    def counted_array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Read an array preceded by its number of elements."""
        count, expected = self.integer(), math.prod(shape)
        if count != expected:
            raise CheckpointError(
                f"{self.file.path}: {name} has {count} numbers, but the .json says {expected}. Use another copy."
            )
        return self.array(name, shape)

    def array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Read the numbers of one array."""
        stored = Stored(FLOAT32, shape, self.place)
        self.place += stored.size
        return self.file.floats(stored, name)

    def integer(self) -> int:
        """Read a u64."""
        return int.from_bytes(self._take(8), "little")

    def _take(self, size: int) -> bytes:
        self.place += size
        return self.file.read(self.place - size, size).tobytes()
