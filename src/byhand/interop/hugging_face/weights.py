"""A folder's model.safetensors, whole or in shards: names, types and places first, then one array at a time.

Source      https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from byhand.errors import DataError, command, reason
from byhand.files.reading import parse_json, read_regular
from byhand.files.tensor_file import head, header
from byhand.files.weights import OpenFile, Stored
from byhand.formats.registry import Format
from byhand.interop.tensors import Arrays, TensorPart, to_theirs

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.safetensors")
MOST = 1 << 24  # bytes of a header or an index: 1,000 blocks take 2 million
SHARDS = 1000
CONVERT = (  # with torch and transformers
    "import transformers as t; [of.from_pretrained({0!r}).save_pretrained({1!r}) "
    "for of in (t.AutoModelForCausalLM, t.AutoTokenizer)]"
)


def content(parts: Mapping[str, TensorPart], arrays: Arrays, kind: Format) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a model.safetensors, one tensor at a time.

    parts  by name: how to make the tensor
    """
    ordered = sorted(parts.items())
    yield head({name: (kind, part.shape) for name, part in ordered}, {"format": "pt"})
    for _, array in to_theirs(arrays, (part for _, part in ordered)):
        yield kind.packed(array).data


class Weights:
    """The arrays of a folder by name; a file is open only while one of its arrays is read."""

    def __init__(self, folder: Path) -> None:
        self.stored: dict[str, tuple[Path, Stored]] = {}
        self._stamps: dict[Path, tuple[int, int, int]] = {}
        for name, expected in _files(folder).items():
            if expected is not None and not (folder / name).exists():
                raise DataError(f"{folder} lacks {name}, which its {INDEX} names. Download the whole model again.")
            with OpenFile(folder / name) as file:
                found, self._stamps[folder / name] = _entries(file), file.stamp
            if expected is not None and expected != found.keys():
                differing = min(expected ^ found.keys())
                raise DataError(f"{folder / INDEX} and {name} differ about {differing[:80]!r}. Use another copy.")
            self.stored |= {key: (folder / name, entry) for key, entry in found.items()}

    def read(self, name: str) -> np.ndarray:
        """Return an array in float32; all numbers must be finite."""
        path, entry = self.stored[name]
        with OpenFile(path) as file:
            if file.stamp != self._stamps[path]:
                raise file.damaged("it changed while it was read")
            return file.floats(entry, name)


def _files(folder: Path) -> dict[str, set[str] | None]:
    """Return the files of the arrays, with the names that each should have if there is an index."""
    whole, index = (folder / WHOLE).exists(), (folder / INDEX).exists()
    if not whole and not index and (found := sorted(folder.glob("pytorch_model*.bin*"))):
        made = folder.with_name(f"{folder.resolve().name}-safetensors")
        convert = command("python", "-c", CONVERT.format(folder.as_posix(), made.as_posix()))
        raise DataError(
            f"{folder} has its weights in {found[0].name}, a pickle, which byhand does not read. Convert it with "
            f"`{convert}`, then import {made}."
        )
    if whole or not index:
        return {WHOLE: None}
    try:
        index = parse_json(read_regular(folder / INDEX, MOST), depth=3)
        places = index["weight_map"]
        if not all(isinstance(place, str) and SHARD.fullmatch(place) for place in places.values()):
            raise ValueError("a file's name")
    except OSError as error:
        raise DataError(f"cannot read {folder / INDEX}: {reason(error)}. Check the folder.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{folder / INDEX} is damaged: it is not an index of shards. Use another copy.") from None
    shards: dict[str, set[str] | None] = {}
    for name, place in places.items():
        names = shards.setdefault(place, set())
        assert names is not None
        names.add(name)
    if not 0 < len(shards) <= SHARDS:
        raise DataError(f"{folder / INDEX} names {len(shards):,} files, but may name 1 to {SHARDS:,}.")
    return shards


def _entries(file: OpenFile) -> dict[str, Stored]:
    try:
        return header(file.read, file.size, MOST)
    except ValueError as error:
        raise file.damaged(str(error)) from None
