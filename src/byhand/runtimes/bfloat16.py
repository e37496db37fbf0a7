"""bfloat16 in NumPy, which has no such type: float32 numbers whose lower sixteen bits are zero."""

import numpy as np


def rounded(array: np.ndarray) -> np.ndarray:
    """Return float32 numbers rounded to the nearest bfloat16, ties to even; NaN stays NaN.

    bfloat16 is float32 without the last 16 bits: the same range, a relative error of at most 2^-8 (normal numbers).
    """
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    even = (bits >> 16) & 1
    near = ((bits + 0x7FFF + even) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(array), np.float32(np.nan), near).reshape(np.shape(array))
