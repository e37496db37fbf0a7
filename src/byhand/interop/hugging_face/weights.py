"""model.safetensors of a folder, whole or in shards: names, types and places first, then one array at a time.

Source      https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from byhand.errors import DataError, reason
from byhand.files.reading import parse_json, read_regular
from byhand.files.weights import SIZES, OpenFile, Stored, elements, float32

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.safetensors")
LENGTH = 8  # bytes: the length of a header
MOST = 1 << 24  # bytes of a header or an index: that of 1,000 blocks has 2 million
SHARDS = 1000


class Weights:
    """The arrays of a folder by name; close it, or use it in a `with` block."""

    def __init__(self, folder: Path) -> None:
        self._held = ExitStack()
        self.stored: dict[str, tuple[OpenFile, Stored]] = {}
        try:
            for name, expected in _files(folder).items():
                file = self._held.enter_context(OpenFile(folder / name))
                found = entries(file)
                if expected is not None and expected != found.keys():
                    differing = min(expected ^ found.keys())
                    raise DataError(f"{folder / INDEX} and {name} differ about {differing[:80]!r}. Use another copy.")
                self.stored |= {key: (file, entry) for key, entry in found.items()}
        except BaseException:
            self._held.close()
            raise

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def read(self, name: str) -> np.ndarray:
        """Return an array of finite numbers in float32."""
        file, entry = self.stored[name]
        array = float32(file.read(entry.begin, entry.size), entry.dtype).reshape(entry.shape)
        if not np.isfinite(array).all():
            raise file.damaged(f"{name[:80]} holds NaN or infinity")
        return array


def _files(folder: Path) -> dict[str, set[str] | None]:
    """Return the files of the arrays, and which names each should have where an index says it."""
    if (folder / WHOLE).exists() or not (folder / INDEX).exists():
        return {WHOLE: None}
    try:
        index = parse_json(read_regular(folder / INDEX, MOST), depth=3)
        places = index["weight_map"]
        if not all(isinstance(place, str) and SHARD.fullmatch(place) for place in places.values()):
            raise ValueError("a file's name")
    except OSError as error:
        raise DataError(f"cannot read {folder / INDEX}: {reason(error)}. Check the folder.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{folder / INDEX} is damaged: it is no index of shards. Use another copy.") from None
    shards: dict[str, set[str] | None] = {}
    for name, place in places.items():
        names = shards.setdefault(place, set())
        assert names is not None
        names.add(name)
    if not 0 < len(shards) <= SHARDS:
        raise DataError(f"{folder / INDEX} names {len(shards):,} files, but may name 1 to {SHARDS:,}.")
    return shards


def entries(file: OpenFile) -> dict[str, Stored]:
    """Return what a safetensors file holds; DataError unless its arrays cover it without gap or overlap."""
    length = int.from_bytes(file.read(0, LENGTH).tobytes(), "little")
    if not 0 < length <= min(file.size - LENGTH, MOST):
        raise file.damaged("the length of its header is wrong")
    try:
        header = parse_json(file.read(LENGTH, length).tobytes(), depth=3)
    except ValueError as error:
        raise file.damaged(f"its header is not JSON: {' '.join(str(error).split())[:80]}") from None
    if not isinstance(header, dict):
        raise file.damaged("its header is no table")
    header.pop("__metadata__", None)
    found, place = dict[str, Stored](), LENGTH + length
    spans: list[tuple[int, int]] = []
    for name, entry in header.items():
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise file.damaged(f"the entry of {name[:80]!r} is not one of an array")
        dtype, shape, count = entry["dtype"], entry["shape"], elements(entry["shape"])
        match entry["data_offsets"]:
            case [int(begin), int(end)] if type(begin) is type(end) is int and 0 <= begin <= end <= file.size:
                pass
            case _:
                raise file.damaged(f"the offsets of {name[:80]!r} are wrong")
        if not isinstance(dtype, str) or dtype not in SIZES or count is None or count * SIZES[dtype] != end - begin:
            raise file.damaged(f"type, shape and offsets of {name[:80]!r} do not agree")
        found[name] = Stored(dtype, tuple(shape), place + begin, end - begin)
        spans.append((begin, end))
    spans.sort()
    if [begin for begin, _ in spans] + [file.size - place] != [0] + [end for _, end in spans]:
        raise file.damaged("its arrays overlap, leave gaps, or do not end with the file")
    return found
