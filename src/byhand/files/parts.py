"""Arrays that several processes saved in parts (shards): `wte[0:64,0:32]` has these rows and columns of `wte`.

The parts of an array partition its elements. An array that is saved whole has its plain name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

Box = tuple[slice, ...]
PLACED = re.compile(r"(?P<name>[^\[\]]+)\[(?P<box>[0-9]{1,9}:[0-9]{1,9}(?:,[0-9]{1,9}:[0-9]{1,9})*)\]")


def placed_name(name: str, box: Box, shape: tuple[int, ...]) -> str:
    """Return the name of an array's part; for the whole array, its own."""
    if all((s.start, s.stop) == (0, n) for s, n in zip(box, shape, strict=True)):
        return name
    return f"{name}[{','.join(f'{s.start}:{s.stop}' for s in box)}]"


def place_of(key: str, shapes: Mapping[str, tuple[int, ...]]) -> tuple[str, Box]:
    """Return the array and the slices that a key names; ValueError if they are out of range."""
    match = PLACED.fullmatch(key)
    name = match["name"] if match else key
    if name not in shapes:
        raise ValueError(f"it has {key[:80]!r}, which the model does not know")
    shape = shapes[name]
    if not match:
        return name, tuple(slice(0, n) for n in shape)
    box = tuple(slice(*map(int, pair.split(":"))) for pair in match["box"].split(","))
    if len(box) != len(shape) or not all(s.start < s.stop <= n for s, n in zip(box, shape, strict=True)):
        raise ValueError(f"{key[:80]!r} is not a part of an array of the shape {shape}")
    return name, box


def shape_of(box: Box) -> tuple[int, ...]:
    """Return the shape of a part."""
    return tuple(s.stop - s.start for s in box)


class Assembly:
    """Assembles arrays from their parts."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> None:
        self.shapes = shapes
        self.arrays = {name: np.full(shape, np.nan, dtype) for name, shape in shapes.items()}
        self._missing = {name: math.prod(shape) for name, shape in shapes.items()}

    def put(self, key: str, part: np.ndarray) -> None:
        """Put a part of finite numbers in its place; ValueError if that is taken."""
        name, box = place_of(key, self.shapes)
        place = self.arrays[name][box]
        if not np.isnan(place).all():
            raise ValueError(f"{key[:80]!r} is there twice")
        place[...] = part
        self._missing[name] -= part.size

    def require_whole(self) -> None:
        """Raise ValueError if an element of an array is in no part."""
        for name, missing in self._missing.items():
            if missing:
                raise ValueError(f"it lacks a part of {name}")
