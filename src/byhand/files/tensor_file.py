"""Reading a safetensors file: its header is checked before anything is allocated.

A header must agree with the names, shapes and type that are known beforehand; the arrays are views of the content.

Source      https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from byhand.errors import brief
from byhand.files.parts import place_of, shape_of
from byhand.files.reading import parse_json
from byhand.files.weights import Stored
from byhand.formats.registry import FORMATS, called

LENGTH = 8  # bytes: the length of the header
MOST_AXES = 8
KNOWN = called("safetensors")
OF_A_TENSOR, BESIDES = 512, 1024  # bytes of a header, more than any of ours has
MOST_OF_PARTS = 1 << 24  # bytes of a header of parts


def sizes(shapes: Mapping[str, tuple[int, ...]], dtype: str) -> tuple[int, int]:
    """Return the fewest and the most bytes that a file of these arrays can have."""
    data = LENGTH + FORMATS[dtype].bytes(sum(map(math.prod, shapes.values())))
    return data, data + BESIDES + OF_A_TENSOR * len(shapes)


def tensors(content: np.ndarray, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file, exactly those of `shapes`, all finite; ValueError says what differs.

    content  uint8 (N,), writable if the arrays should be
    """
    found = _header(content, BESIDES + OF_A_TENSOR * len(shapes))
    for missing in sorted(shapes.keys() - found.keys())[:1]:
        raise ValueError(f"it lacks {missing}")
    for extra in sorted(found.keys() - shapes.keys())[:1]:
        raise ValueError(f"it has {extra[:80]!r}, which the model does not know")
    return _arrays(content, found, shapes, dtype)


def parts(content: np.ndarray, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, np.ndarray]:
    """Return the parts that a file has of arrays of these shapes (see `parts.py`); ValueError says what is wrong."""
    found = _header(content, MOST_OF_PARTS)
    return _arrays(content, found, {key: shape_of(place_of(key, shapes)[1]) for key in found}, dtype)


def _arrays(
    content: np.ndarray, found: Mapping[str, Stored], shapes: Mapping[str, tuple[int, ...]], dtype: str
) -> dict[str, np.ndarray]:
    """Return the arrays of a file; ValueError unless their types and shapes are due."""
    for name, shape in shapes.items():
        if (kind := found[name].kind) != FORMATS[dtype]:
            raise ValueError(f"{name} is {kind.symbol!r}, but the config says {dtype}")
        if found[name].shape != shape:
            raise ValueError(f"{name} has shape {found[name].shape}, but the config says {shape}")
    return {name: _array(name, content, found[name], dtype) for name in shapes}


def _array(name: str, content: np.ndarray, stored: Stored, dtype: str) -> np.ndarray:
    data = content[stored.begin : stored.begin + stored.size]
    if data.ctypes.data % np.dtype(dtype).alignment:
        data = data.copy()
    array = data.view(np.dtype(dtype).newbyteorder("<")).reshape(stored.shape).astype(dtype, copy=False)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return array


def _header(content: np.ndarray, most: int) -> dict[str, Stored]:
    return header(lambda begin, size: content[begin : begin + size], len(content), most)


def header(read: Callable[[int, int], np.ndarray], size: int, most: int) -> dict[str, Stored]:
    """Return what a file holds by name; ValueError unless its arrays cover it without gap or overlap.

    read  gives bytes of the file, uint8: where they begin, how many
    size  of the file, bytes
    most  bytes that the header may have
    """
    length = int.from_bytes(read(0, min(LENGTH, size)).tobytes(), "little")
    if not 0 < length <= min(size - LENGTH, most):
        raise ValueError("the length of its header is wrong")
    try:
        entries = parse_json(read(LENGTH, length).tobytes(), depth=3)
    except ValueError as error:
        raise ValueError(f"its header is not JSON: {brief(error)}") from None
    if not isinstance(entries, dict):
        raise ValueError("its header is no table")
    entries.pop("__metadata__", None)
    found = {name: _entry(name, entry, LENGTH + length) for name, entry in entries.items()}
    spans = sorted((entry.begin, entry.begin + entry.size) for entry in found.values())
    if [begin for begin, _ in spans] + [size] != [LENGTH + length] + [end for _, end in spans]:
        raise ValueError("its arrays overlap, leave gaps, or do not end with the file")
    return found


def _entry(name: str, entry: object, place: int) -> Stored:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the entry of {name[:80]!r} is not one of an array")
    dtype, shape = entry["dtype"], entry["shape"]
    if not isinstance(dtype, str) or dtype not in KNOWN or not _is_shape(shape):
        raise ValueError(f"{name[:80]!r} has the type {str(dtype)[:20]!r} and the shape {repr(shape)[:80]}")
    match entry["data_offsets"]:
        case [int(begin), int(end)] if type(begin) is type(end) is int and begin >= 0:
            found = Stored(KNOWN[dtype], tuple(shape), place + begin)
            if end - begin == found.size:
                return found
    raise ValueError(f"the offsets of {name[:80]!r} are wrong")


def _is_shape(shape: object) -> bool:
    """Return whether JSON is the shape of an array in a file."""
    return (
        isinstance(shape, list)
        and len(shape) <= MOST_AXES
        and all(type(n) is int and 0 <= n < 1 << 48 for n in shape)
    )
