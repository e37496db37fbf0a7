"""Host arrays: lists, token ids and initial weights as NumPy arrays.

Only this file picks a framework: engine, equations and model find their functions through the arrays they are given.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from byhand.errors import ConfigError, DataError

FLOATS = {"float32": np.float32, "float64": np.float64}  # types in which a model computes


def as_array(data: Any) -> np.ndarray:
    """Return a list or a number as an array."""
    return np.asarray(data)


def float_type(dtype: Any) -> Any:
    """Return the NumPy type of this name; ConfigError if the model has no such precision."""
    try:
        return FLOATS[np.dtype(dtype).name]
    except (TypeError, KeyError):
        raise ConfigError(f"dtype is {dtype!r}. Use float32 or float64.") from None


def normal(name: str, shape: tuple[int, ...], mean: float, std: float, seed: int, dtype: Any) -> np.ndarray:
    """Return normally distributed numbers from a generator seeded with seed and name, independent of other arrays.

    Raises ConfigError for a seed that is not an integer of at least 0.
    """
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ConfigError(f"seed is {seed!r}, but must be an integer of at least 0. Use 1.")
    if not std:
        return np.full(shape, mean, float_type(dtype))
    generator = np.random.default_rng([seed, *name.encode()])
    return (mean + std * generator.standard_normal(shape)).astype(float_type(dtype))


def zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return zeros of a type."""
    return np.zeros(shape, dtype)


def token_array(tokens: Any, vocab_size: int, what: str = "tokens", least: int = 0) -> np.ndarray:
    """Return tokens as an integer array (B, T); DataError unless all are integers in [least, vocab_size)."""
    try:
        array = np.asarray(getattr(tokens, "data", tokens) if hasattr(tokens, "requires_grad") else tokens)
    except ValueError:
        raise DataError(f"{what} have rows of different lengths. Pass rows of one length.") from None
    if array.dtype.kind not in "iu":
        raise DataError(f"{what} must be integers, not {array.dtype}. Pass token ids.")
    if array.ndim != 2:
        raise DataError(f"{what} must have the shape (B, T), not {array.shape}. Use tokens[None, :] for one row.")
    if array.size == 0:
        raise DataError(f"{what} of shape {array.shape} hold no token. Pass at least one.")
    low, high = int(array.min()), int(array.max())
    if low < least or high >= vocab_size:
        bad = low if low < least else high
        raise DataError(f"{what} hold the id {bad}, but the vocabulary has ids 0 to {vocab_size - 1}.")
    return array.astype(np.int64, copy=False)


def target_array(targets: Any, vocab_size: int) -> np.ndarray:
    """Return targets as an integer array (B, T); -1 means no target. DataError as in `token_array`."""
    return token_array(targets, vocab_size, "targets", least=-1)


def keep_pages() -> bool:
    """Ask glibc to keep freed pages for the next step instead of returning them; return whether it agreed.

    Each step frees and allocates the same few megabytes; without this the kernel zeroes them every time.
    """
    if not sys.platform.startswith("linux"):
        return False
    m_trim_threshold, m_mmap_threshold = -1, -3  # from malloc.h
    try:
        libc = ctypes.CDLL(None)
        return all(libc.mallopt(option, 1 << 30) for option in (m_mmap_threshold, m_trim_threshold))
    except (OSError, AttributeError):  # no glibc, as on Alpine
        return False


def openblas_threads(package: Path) -> Callable[[int], None] | None:
    """Return the function that sets the threads of the OpenBLAS in the wheel of SciPy or NumPy; None without one.

    package  its folder
    """
    folders = [package.parent / f"{package.name}.libs", package / ".dylibs"]
    for path in (p for folder in folders if folder.is_dir() for p in folder.iterdir() if "openblas" in p.name):
        if path.suffix == ".a":
            continue
        library = ctypes.CDLL(str(path))  # already loaded by the package
        for name in ("scipy_openblas_set_num_threads", "openblas_set_num_threads"):
            for symbol in (name, f"{name}64_"):
                with contextlib.suppress(AttributeError):
                    return getattr(library, symbol)
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):  # a distribution's package
            return ctypes.CDLL("libopenblas.so.0").openblas_set_num_threads
    return None


def multiply_on_one_core() -> None:
    """Let NumPy multiply on one core: threads that wait for each other are slow beside other programs."""
    if set_threads := openblas_threads(Path(np.__file__).parent):
        set_threads(1)
