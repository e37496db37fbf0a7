"""Numbers of GGUF tensors: plain types and quantised blocks, to float32 and back.

Q8_0   32 numbers in 34 bytes: float16 d, int8 q;              x = d q
Q4_0   32 in 18: float16 d, nibbles q, low ones first;         x = d (q - 8)
Q4_K   256 in 144: float16 d and m, 8 scales and minima of 6 bits, nibbles;   x = d s q - m n
Q6_K   256 in 210: 4 low and 2 high bits of q, 16 int8 scales, float16 d;     x = d s (q - 32)

Quantising gives the bytes of the gguf package's reference, dequantising its numbers.

Source      https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-common.h
"""

from __future__ import annotations

import numpy as np

from byhand.files.weights import NUMBER_TYPES, NumberType

HALF = 65504.0  # the largest float16
LARGEST = {"Q8_0": 127 * HALF, "Q4_0": 8 * HALF}  # number of a block; beyond it, d would be infinite


def quantised(x: np.ndarray, kind: NumberType) -> np.ndarray:
    """Return float32 numbers as bytes of F32, or of Q8_0 or Q4_0: a multiple of 32, and none larger than LARGEST."""
    blocks = x.reshape(-1, kind.block)
    if kind.block == 1:
        return blocks.astype("<f4", copy=False).view(np.uint8).reshape(-1)
    if kind.name == "Q8_0":
        d = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
        q = _rounded(blocks * _inverse(d)).astype(np.int8).view(np.uint8)
    else:
        extreme = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
        d = extreme / np.float32(-8)
        shifted = np.trunc(blocks * _inverse(d) + np.float32(8.5))
        nibbles = shifted.astype(np.uint8).clip(0, 15).reshape(-1, 2, 16)
        q = nibbles[:, 0] | nibbles[:, 1] << np.uint8(4)
    return np.concatenate([d.astype(np.float16).view(np.uint8), q], axis=1).reshape(-1)


def _inverse(d: np.ndarray) -> np.ndarray:
    """Return 1 / d, and 0 if d is zero or so small that its inverse is infinite."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1 / d
    return np.where(np.isinf(inverse), np.float32(0), inverse)


def _rounded(x: np.ndarray) -> np.ndarray:
    """Round halves away from zero."""
    whole = np.floor(np.abs(x))
    return np.sign(x) * (whole + np.floor(2 * (np.abs(x) - whole)))


def _half(content: np.ndarray) -> np.ndarray:
    return content.view("<f2").astype(np.float32)


def _nibbles(content: np.ndarray) -> np.ndarray:
    """Return (..., 2, n): low ones, then high ones."""
    return np.stack([content & 15, content >> 4], axis=-2)


def _q8_0(blocks: np.ndarray) -> np.ndarray:
    return blocks[:, 2:].view(np.int8).astype(np.float32) * _half(blocks[:, :2].copy())


def _q4_0(blocks: np.ndarray) -> np.ndarray:
    q = _nibbles(blocks[:, 2:]).reshape(len(blocks), 32).astype(np.int8) - 8
    return q.astype(np.float32) * _half(blocks[:, :2].copy())


def _q4_k(blocks: np.ndarray) -> np.ndarray:
    d, m = _half(blocks[:, :2].copy()), _half(blocks[:, 2:4].copy())
    first, second, mixed = (blocks[:, begin : begin + 4] for begin in (4, 8, 12))
    scales = np.concatenate([first & 63, mixed & 15 | first >> 2 & 48], axis=1)
    minima = np.concatenate([second & 63, mixed >> 4 | second >> 2 & 48], axis=1)
    q = _nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32).astype(np.float32)
    return (d * scales.astype(np.float32))[..., None] * q - (m * minima.astype(np.float32))[..., None]


def _q6_k(blocks: np.ndarray) -> np.ndarray:
    low, high, scales, d = np.split(blocks, [128, 192, 208], axis=1)
    low = _nibbles(low.reshape(-1, 2, 64)).reshape(-1, 8, 32)
    high = (high.reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3).reshape(-1, 8, 32)
    q = ((low | high << np.uint8(4)).astype(np.int8) - np.int8(32)).reshape(-1, 16, 16).astype(np.float32)
    scale = _half(d.copy()) * scales.copy().view(np.int8).astype(np.float32)
    return scale[..., None] * q


KINDS = {  # by their codes in a file
    0: NUMBER_TYPES["F32"],
    1: NUMBER_TYPES["F16"],
    30: NUMBER_TYPES["BF16"],
    28: NUMBER_TYPES["F64"],
    8: NumberType("Q8_0", 34, _q8_0, 32),
    2: NumberType("Q4_0", 18, _q4_0, 32),
    12: NumberType("Q4_K", 144, _q4_k, 256),
    14: NumberType("Q6_K", 210, _q6_k, 256),
}
BY_NAME = {kind.name: kind for kind in KINDS.values()}
