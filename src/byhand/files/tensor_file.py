"""Reading a safetensors file whose names, shapes and type are known beforehand.

The header must agree with them, and decides no allocation. Arrays are views of the content.

Source      https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from byhand.files.parts import place_of, shape_of
from byhand.files.reading import parse_json

TYPES = {"float32": "F32", "float64": "F64"}
LENGTH = 8  # bytes: the length of the header
OF_A_TENSOR, BESIDES = 512, 1024  # bytes of a header, more than any of ours has
MOST_OF_PARTS = 1 << 24  # bytes of a header of parts


def sizes(shapes: Mapping[str, tuple[int, ...]], dtype: str) -> tuple[int, int]:
    """Return the fewest and the most bytes that a file of these arrays can have."""
    data = LENGTH + np.dtype(dtype).itemsize * sum(map(math.prod, shapes.values()))
    return data, data + BESIDES + OF_A_TENSOR * len(shapes)


def tensors(content: np.ndarray, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file, exactly those of `shapes`, all finite; ValueError says what differs.

    content  uint8 (N,), writable if the arrays should be
    """
    header, data = _opened(content, BESIDES + OF_A_TENSOR * len(shapes))
    for missing in sorted(shapes.keys() - header.keys())[:1]:
        raise ValueError(f"it lacks {missing}")
    for extra in sorted(header.keys() - shapes.keys())[:1]:
        raise ValueError(f"it has {extra[:80]!r}, which the model does not know")
    return _arrays(header, data, shapes, dtype)


def parts(content: np.ndarray, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, np.ndarray]:
    """Return the parts that a file has of arrays of these shapes (see `parts.py`); ValueError says what is wrong."""
    header, data = _opened(content, MOST_OF_PARTS)
    return _arrays(header, data, {key: shape_of(place_of(key, shapes)[1]) for key in header}, dtype)


def _opened(content: np.ndarray, most: int) -> tuple[dict[str, object], np.ndarray]:
    """Return the header, of at most so many bytes, and the data behind it."""
    length = int.from_bytes(content[:LENGTH].tobytes(), "little")
    if not 0 < length <= min(len(content) - LENGTH, most):
        raise ValueError("the length of its header is wrong")
    header = parse_json(content[LENGTH : LENGTH + length].tobytes(), depth=3)
    if not isinstance(header, dict):
        raise ValueError("its header is no table")
    return header, content[LENGTH + length :]


def _arrays(
    header: Mapping[str, object], data: np.ndarray, shapes: Mapping[str, tuple[int, ...]], dtype: str
) -> dict[str, np.ndarray]:
    """Return the arrays that lie in the data one behind the other, by the header."""
    places = {name: _place(name, header[name], shape, dtype) for name, shape in shapes.items()}
    spans = sorted(places.values())
    if [begin for begin, _ in spans] + [len(data)] != [0] + [end for _, end in spans]:
        raise ValueError("its arrays overlap, leave gaps, or do not end with the file")
    return {name: _array(name, data[slice(*places[name])], shape, dtype) for name, shape in shapes.items()}


def _place(name: str, entry: object, shape: tuple[int, ...], dtype: str) -> tuple[int, int]:
    """Return (begin, end) of an array; ValueError unless type, shape and size are due."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the entry of {name} is not one of an array")
    if entry["dtype"] != TYPES[dtype]:
        raise ValueError(f"{name} is {str(entry['dtype'])[:20]!r}, but the config says {dtype}")
    if entry["shape"] != list(shape):
        found = tuple(entry["shape"]) if isinstance(entry["shape"], list) else entry["shape"]
        raise ValueError(f"{name} has shape {str(found)[:80]}, but the config says {shape}")
    match entry["data_offsets"]:
        case [int(begin), int(end)] if begin >= 0 and end - begin == np.dtype(dtype).itemsize * math.prod(shape):
            return begin, end
    raise ValueError(f"the offsets of {name} are wrong")


def _array(name: str, data: np.ndarray, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if data.ctypes.data % np.dtype(dtype).alignment:
        data = data.copy()
    array = data.view(np.dtype(dtype).newbyteorder("<")).reshape(shape).astype(dtype, copy=False)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return array
