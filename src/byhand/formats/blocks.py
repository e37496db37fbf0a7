"""GGUF's quantised blocks: numbers that share a scale.

Q8_0   32 numbers in 34 bytes: float16 d, int8 q;              x = d q
Q4_0   32 in 18: float16 d, nibbles q, low ones first;         x = d (q - 8)
Q4_K   256 in 144: float16 d and m, 8 scales and minima of 6 bits, nibbles;   x = d s q - m n
Q6_K   256 in 210: 4 low and 2 high bits of q, 16 int8 scales, float16 d;     x = d s (q - 32)

Packing gives the same bytes as the gguf package's reference, unpacking the same numbers.

Source      https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-common.h
"""

from __future__ import annotations

import numpy as np

from byhand.formats.format import ErrorBound, Format, register
from byhand.formats.plain import HALF


def to_q8_0(blocks: np.ndarray) -> np.ndarray:
    """Return blocks, uint8 (N, 34), of float32 numbers (N, 32)."""
    d = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    q = _rounded(blocks * _inverse(d)).astype(np.int8).view(np.uint8)
    return np.concatenate([d.astype(np.float16).view(np.uint8), q], axis=1)


def to_q4_0(blocks: np.ndarray) -> np.ndarray:
    """Return blocks, uint8 (N, 18), of float32 numbers (N, 32)."""
    extreme = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    d = extreme / np.float32(-8)
    shifted = np.trunc(blocks * _inverse(d) + np.float32(8.5))
    nibbles = shifted.astype(np.uint8).clip(0, 15).reshape(-1, 2, 16)
    q = nibbles[:, 0] | nibbles[:, 1] << np.uint8(4)
    return np.concatenate([d.astype(np.float16).view(np.uint8), q], axis=1)


def rounded_rows(x: np.ndarray) -> np.ndarray:
    """Return activations (..., N) rounded as for products with quantised weights: Q8_0, but ties go to even."""
    rows = x.reshape(-1, x.shape[-1])
    blocks = np.pad(rows, ((0, 0), (0, -x.shape[-1] % 32))).reshape(-1, 32)
    e = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    p = np.rint(blocks * _inverse(e)) * e.astype(np.float16).astype(np.float32)
    return p.reshape(len(rows), -1)[:, : x.shape[-1]].reshape(x.shape)


def _inverse(d: np.ndarray) -> np.ndarray:
    """Return 1 / d; 0 if d is zero or its inverse is infinite."""
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


# A scale is rounded to float16, a number to half a step of it; Q4_0's range -8 to 7 leaves one end a whole step away.
register(
    Format(
        name="q8_0", symbol="Q8_0", size=34, block=32, unpack=_q8_0, pack=to_q8_0, largest=127 * HALF,
        error=ErrorBound(of_block=1 / 254 + 2.0**-11 + 2.0**-20, absolute=127 * 2.0**-25),
        codes={"gguf": 8, "gguf file": 7},
    )
)  # fmt: skip
register(
    Format(
        name="q4_0", symbol="Q4_0", size=18, block=32, unpack=_q4_0, pack=to_q4_0, largest=8 * HALF,
        error=ErrorBound(of_block=1 / 8 + 2.0**-11 + 2.0**-20, absolute=8 * 2.0**-25),
        codes={"gguf": 2, "gguf file": 2},
    )
)  # fmt: skip
register(Format(name="q4_k", symbol="Q4_K", size=144, block=256, unpack=_q4_k, codes={"gguf": 12}))
register(Format(name="q6_k", symbol="Q6_K", size=210, block=256, unpack=_q6_k, codes={"gguf": 14}))
