"""Reads and writes a safetensors file, one array at a time: memory never holds a file beside its arrays.

A header must agree with the expected names, shapes and type, and is checked before anything is allocated.

Source      https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from byhand.errors import brief
from byhand.files.parts import place_of, shape_of
from byhand.files.reading import parse_json
from byhand.files.sealed import Again, Read
from byhand.files.unread import Unread
from byhand.files.weights import OWN_PAGES, Stored
from byhand.formats.registry import FORMATS, Format, called

LENGTH = 8  # bytes: the length of the header
ALIGNMENT = 8  # of the first array
MOST_AXES = 8
KNOWN = called("safetensors")
OF_A_TENSOR, BESIDES = 512, 1024  # bytes of a header, more than any of ours has
MOST_OF_PARTS = 1 << 24  # bytes of a header of parts
VERIFIED = 1 << 19  # bytes verified at a time, in memory that malloc reuses


def sizes(shapes: Mapping[str, tuple[int, ...]], dtype: str) -> tuple[int, int]:
    """Return the fewest and the most bytes that a file of these arrays can have."""
    data = LENGTH + FORMATS[dtype].bytes(sum(map(math.prod, shapes.values())))
    return data, data + BESIDES + OF_A_TENSOR * len(shapes)


def head(arrays: Mapping[str, tuple[Format, tuple[int, ...]]], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the head of a file whose arrays follow in this order.

    arrays  format and shape by name
    """
    entries: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    place = 0
    for name, (kind, shape) in arrays.items():
        begin, place = place, place + kind.bytes(math.prod(shape))
        entries[name] = {"dtype": kind.symbol, "shape": shape, "data_offsets": [begin, place]}
    written = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    written += b" " * (-len(written) % ALIGNMENT)
    return len(written).to_bytes(LENGTH, "little") + written


def blocks(arrays: Mapping[str, np.ndarray]) -> Iterable[bytes | memoryview]:
    """Return a file of arrays as blocks: its head, then each array's memory, in place where it is contiguous.

    Small ones are joined: each block is a write.
    """
    ordered = sorted(arrays.items())
    small = [head({name: (FORMATS[str(array.dtype)], array.shape) for name, array in ordered})]
    for _, array in ordered:
        if array.nbytes < OWN_PAGES:
            small.append(array.tobytes())
            continue
        yield b"".join(small)
        small.clear()
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    yield b"".join(small)


def tensors(
    read: Read, size: int, shapes: Mapping[str, tuple[int, ...]], dtype: str, again: Again | None = None
) -> dict[str, Any]:
    """Return the arrays of a file, exactly those of `shapes`, all finite; ValueError says what differs.

    read   returns the bytes of the file in order, each once, as writable uint8 (N,)
    size   of the file, bytes
    again  reads any bytes again: all arrays are read and verified now, and returned as `Unread`
    """
    found = header(read, size, BESIDES + OF_A_TENSOR * len(shapes))
    for missing in sorted(shapes.keys() - found.keys())[:1]:
        raise ValueError(f"it lacks {missing}")
    for extra in sorted(found.keys() - shapes.keys())[:1]:
        raise ValueError(f"it has {extra[:80]!r}, which the model does not know")
    arrays: dict[str, Any] = {}
    for name, stored in _in_order(found, shapes, dtype):
        if again:
            for piece in _pieces(stored):
                _finite(name, _array(read, piece, dtype))
            arrays[name] = Unread(stored.shape, dtype, partial(_fill, again, stored.begin))
        else:
            arrays[name] = _finite(name, _array(read, stored, dtype))
    return {name: arrays[name] for name in shapes}


def parts(read: Read, size: int, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, np.ndarray]:
    """Return a file's parts of arrays of these shapes (see `parts.py`); ValueError says what is wrong."""
    found = header(read, size, MOST_OF_PARTS)
    due = {key: shape_of(place_of(key, shapes)[1]) for key in found}
    arrays = {name: _finite(name, _array(read, stored, dtype)) for name, stored in _in_order(found, due, dtype)}
    return {name: arrays[name] for name in due}


def _in_order(
    found: Mapping[str, Stored], shapes: Mapping[str, tuple[int, ...]], dtype: str
) -> list[tuple[str, Stored]]:
    """Return the arrays of a file in its order; ValueError unless they have these types and shapes."""
    for name, shape in shapes.items():
        if (kind := found[name].kind) != FORMATS[dtype]:
            raise ValueError(f"{name} is {kind.symbol!r}, but the config says {dtype}")
        if found[name].shape != shape:
            raise ValueError(f"{name} has shape {found[name].shape}, but the config says {shape}")
    return sorted(found.items(), key=lambda item: item[1].begin)


def _pieces(stored: Stored) -> Iterator[Stored]:
    """Yield an array in pieces: memory that was just freed holds the next."""
    step, count = VERIFIED // stored.kind.size, math.prod(stored.shape)
    for first in range(0, count, step):
        yield Stored(stored.kind, (min(step, count - first),), stored.begin + stored.kind.bytes(first))


def _array(read: Read, stored: Stored, dtype: str) -> np.ndarray:
    numbers = read(stored.begin, stored.size).view(np.dtype(dtype).newbyteorder("<"))
    return numbers.reshape(stored.shape).astype(dtype, copy=False)


def _fill(again: Again, begin: int, rows: np.ndarray, element: int) -> None:
    """Fill contiguous rows with an array's elements from index `element` on."""
    again(begin + element * rows.itemsize, rows.reshape(-1).view(np.uint8))
    if rows.dtype != (stored := rows.dtype.newbyteorder("<")):
        rows[...] = rows.view(stored)


def _finite(name: str, array: np.ndarray) -> np.ndarray:
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return array


def header(read: Read, size: int, most: int) -> dict[str, Stored]:
    """Return the arrays of a file by name; ValueError unless they cover it without gap or overlap.

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
        raise ValueError("its header is not a table")
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
    """Return whether a JSON value is the shape of an array in a file."""
    return (
        isinstance(shape, list)
        and len(shape) <= MOST_AXES
        and all(type(n) is int and 0 <= n < 1 << 48 for n in shape)
    )
