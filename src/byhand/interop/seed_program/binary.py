"""Reading PREFIX.bin of the original program, within the size that its settings allow."""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np

from byhand.errors import CheckpointError, reason
from byhand.files.reading import open_regular
from byhand.memory import physical

VERSION, MAGIC = 1, b"BGPTCKPT"
HEADER = struct.Struct("<8sIIQI")
WRITING = ".writing"  # ends the name of a file until it is whole
BESIDES_BLOCKS, IN_BLOCK = 4, 8  # arrays: two tables and the LM head; a block


def binary_content(path: str, count: int, n_arrays: int) -> bytes:
    """Return the bytes of PREFIX.bin, at most as many as the settings allow."""
    most = HEADER.size + 8 * n_arrays + 4 * count + 8 + 8 * count
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise CheckpointError(
                    f"{path} is damaged: it has {size:,} bytes, but by its .json at most {most:,}. Use another copy."
                )
            if (have := physical()) is not None and 2 * size > have:
                raise CheckpointError(f"{path} has {size / 1e9:.1f} GB, more than this machine's memory can take.")
            return file.read(most)
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {reason(error)}. --load takes the path without .bin.") from None


class Reader:
    """PREFIX.bin, read from front to end; CheckpointError names the place of a mismatch."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path = path
        self.content = content
        self.place = 0

    def header(self, settings: dict[str, Any]) -> tuple[bool, int]:
        """Return (has optimizer, step), which PREFIX.json must confirm."""
        if self.content[: len(MAGIC)] != MAGIC:
            raise CheckpointError(
                f"{self.path} is no checkpoint of the original program: it does not begin with BGPTCKPT."
            )
        _, version, has_optimizer, step, n_arrays = HEADER.unpack(self._take(HEADER.size, "the header"))
        if version != VERSION:
            raise CheckpointError(f"{self.path} has version {version}, but only {VERSION} is known.")
        expected = BESIDES_BLOCKS + IN_BLOCK * settings["n_layers"]
        for what, here, there in (
            ("arrays", n_arrays, expected),
            ("step", step, settings["step"]),
            ("has_optim_state", has_optimizer, int(settings["has_optim_state"])),
        ):
            if here != there:
                raise CheckpointError(
                    f"{self.path} and its .json are not one checkpoint: {what} {here} and {there}. Use another copy, "
                    f"or after a save that was cut short rename .json{WRITING} to .json."
                )
        if n_arrays * 8 > len(self.content):
            raise self._truncated("the arrays")
        return bool(has_optimizer), step

    def counted_array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Read an array that is preceded by its number of elements."""
        count, expected = self.integer(), int(np.prod(shape, dtype=object))
        if count != expected:
            raise CheckpointError(
                f"{self.path}: {name} has {count} numbers, but the .json says {expected}. Use another copy."
            )
        return self.array(name, shape)

    def array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Read the numbers of one array."""
        data = np.frombuffer(self._take(4 * int(np.prod(shape, dtype=object)), name), "<f4")
        if not np.isfinite(data).all():
            raise CheckpointError(f"{self.path} is damaged: {name} holds NaN or infinity. Use another copy.")
        return data.astype(np.float32).reshape(shape)

    def integer(self) -> int:
        """Read a u64."""
        return int.from_bytes(self._take(8, "a count"), "little")

    def end(self) -> None:
        """Raise CheckpointError if bytes are left."""
        left = len(self.content) - self.place
        if left:
            raise CheckpointError(f"{self.path} is damaged: {left} bytes follow its end. Use another copy.")

    def _take(self, size: int, what: str) -> bytes:
        if self.place + size > len(self.content):
            raise self._truncated(what)
        self.place += size
        return self.content[self.place - size : self.place]

    def _truncated(self, what: str) -> CheckpointError:
        return CheckpointError(
            f"{self.path} is truncated: it ends at {len(self.content)} bytes, within {what}. Use another copy."
        )
