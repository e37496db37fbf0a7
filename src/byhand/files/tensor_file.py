"""Reading a safetensors file whose names, shapes and type are known beforehand.

The header must agree with them, and decides no allocation. Arrays are views of the content.

Source      https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from byhand.files import tensor_header
from byhand.files.parts import place_of, shape_of
from byhand.files.tensor_header import LENGTH
from byhand.files.weights import Stored

TYPES = {"float32": "F32", "float64": "F64"}
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
    found = _stored(content, BESIDES + OF_A_TENSOR * len(shapes))
    for missing in sorted(shapes.keys() - found.keys())[:1]:
        raise ValueError(f"it lacks {missing}")
    for extra in sorted(found.keys() - shapes.keys())[:1]:
        raise ValueError(f"it has {extra[:80]!r}, which the model does not know")
    return _arrays(content, found, shapes, dtype)


def parts(content: np.ndarray, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, np.ndarray]:
    """Return the parts that a file has of arrays of these shapes (see `parts.py`); ValueError says what is wrong."""
    found = _stored(content, MOST_OF_PARTS)
    return _arrays(content, found, {key: shape_of(place_of(key, shapes)[1]) for key in found}, dtype)


def _arrays(
    content: np.ndarray, found: Mapping[str, Stored], shapes: Mapping[str, tuple[int, ...]], dtype: str
) -> dict[str, np.ndarray]:
    """Return the arrays of a file; ValueError unless their types and shapes are due."""
    for name, shape in shapes.items():
        if found[name].dtype != TYPES[dtype]:
            raise ValueError(f"{name} is {found[name].dtype!r}, but the config says {dtype}")
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


def _stored(content: np.ndarray, most: int) -> dict[str, Stored]:
    return tensor_header.stored(lambda begin, size: content[begin : begin + size], len(content), most)
