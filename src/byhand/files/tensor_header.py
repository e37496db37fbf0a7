"""The header of a safetensors file: which arrays it holds and where, checked before anything is allocated.

Source      https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from byhand.errors import brief
from byhand.files.reading import parse_json
from byhand.files.weights import SIZES, Stored, elements

LENGTH = 8  # bytes: the length of the header


def stored(read: Callable[[int, int], np.ndarray], size: int, most: int) -> dict[str, Stored]:
    """Return what a file holds by name; ValueError unless its arrays cover it without gap or overlap.

    read  gives bytes of the file, uint8: where they begin, how many
    size  of the file, bytes
    most  bytes that the header may have
    """
    length = int.from_bytes(read(0, min(LENGTH, size)).tobytes(), "little")
    if not 0 < length <= min(size - LENGTH, most):
        raise ValueError("the length of its header is wrong")
    try:
        header = parse_json(read(LENGTH, length).tobytes(), depth=3)
    except ValueError as error:
        raise ValueError(f"its header is not JSON: {brief(error)}") from None
    if not isinstance(header, dict):
        raise ValueError("its header is no table")
    header.pop("__metadata__", None)
    found = {name: _stored(name, entry, LENGTH + length) for name, entry in header.items()}
    spans = sorted((entry.begin, entry.begin + entry.size) for entry in found.values())
    if [begin for begin, _ in spans] + [size] != [LENGTH + length] + [end for _, end in spans]:
        raise ValueError("its arrays overlap, leave gaps, or do not end with the file")
    return found


def _stored(name: str, entry: object, place: int) -> Stored:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the entry of {name[:80]!r} is not one of an array")
    dtype, shape, count = entry["dtype"], entry["shape"], elements(entry["shape"])
    if not isinstance(dtype, str) or dtype not in SIZES or count is None:
        raise ValueError(f"{name[:80]!r} has the type {str(dtype)[:20]!r} and the shape {str(shape)[:80]}")
    match entry["data_offsets"]:
        case [int(begin), int(end)] if type(begin) is type(end) is int and begin >= 0:
            if end - begin == count * SIZES[dtype]:
                return Stored(dtype, tuple(shape), place + begin, end - begin)
    raise ValueError(f"the offsets of {name[:80]!r} are wrong")
