"""The reference runtime: NumPy arrays, eager, one equation at a time.

Equations find NumPy through the arrays themselves; what is here is what only a runtime knows: how arrays come to
be (initial parameters, token arrays), and how to keep the allocator from handing pages back after every step.
"""

import ctypes
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from byhand.errors import ConfigError, DataError

DTYPES = {"float32": np.float32, "float64": np.float64}


def initial_parameters(
    shapes: Mapping[str, tuple[int, ...]], n_layers: int, seed: int, dtype: str
) -> dict[str, np.ndarray]:
    """Draw initial parameters by name: N(0, 0.02) for tables and weights, zeros for biases, ones for gains.

    Projections that write into the residual stream are drawn with 0.02 / sqrt(2 L), so that the stream's variance
    does not grow with depth. Every array has its own generator, so that adding one changes no other.
    Raises ConfigError for a seed that is no integer of at least 0. Source: Radford et al. 2019, section 2.3.
    """
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ConfigError(f"seed is {seed!r}, but must be an integer of at least 0. Use 1.")
    return {name: _initial_array(name, shape, n_layers, seed, array_dtype(dtype)) for name, shape in shapes.items()}


def _initial_array(name: str, shape: tuple[int, ...], n_layers: int, seed: int, dtype: Any) -> np.ndarray:
    if name.endswith(".gain"):
        return np.ones(shape, dtype)
    if len(shape) == 1:
        return np.zeros(shape, dtype)
    std = 0.02 / math.sqrt(2 * n_layers) if name.endswith((".w_proj", ".w_out")) else 0.02
    generator = np.random.default_rng([seed, *name.encode()])
    return (std * generator.standard_normal(shape)).astype(dtype)


def array_dtype(dtype: str) -> Any:
    """Return the NumPy type of this name; ConfigError if the model has no such precision."""
    try:
        return DTYPES[np.dtype(dtype).name]
    except (TypeError, KeyError):
        raise ConfigError(f"dtype is {dtype!r}. Use float32 or float64.") from None


def token_array(tokens: Any, vocab_size: int, what: str = "tokens") -> np.ndarray:
    """Return tokens as an integer array (B, T); DataError if one is no integer or not in [0, vocab_size)."""
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
    if low < 0 or high >= vocab_size:
        bad = low if low < 0 else high
        raise DataError(f"{what} hold the id {bad}, but the vocabulary has ids 0 to {vocab_size - 1}.")
    return array.astype(np.int64, copy=False)


def keep_pages() -> bool:
    """Ask glibc to keep freed pages for the next step instead of returning them; True where it could be asked.

    Each step frees and allocates the same few megabytes; without this the kernel zeroes them anew every time.
    """
    if not sys.platform.startswith("linux"):
        return False
    m_trim_threshold, m_mmap_threshold = -1, -3  # from malloc.h
    try:
        libc = ctypes.CDLL(None)
        return all(libc.mallopt(option, 1 << 30) for option in (m_mmap_threshold, m_trim_threshold))
    except (OSError, AttributeError):  # no glibc, as on Alpine
        return False
