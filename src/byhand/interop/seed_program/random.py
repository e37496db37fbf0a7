"""The original program's random numbers: xorshift64*, one 64-bit word of state.

Equation    x ^= x >> 12,  x ^= x << 25,  x ^= x >> 27;  the output is the upper half of x * M mod 2^64
Source      Marsaglia 2003, Xorshift RNGs; Vigna 2016, arXiv:1402.6246 (the multiplier M)
"""

from __future__ import annotations

import math

import numpy as np

WORD = 2**64 - 1
MULTIPLIER = 2685821657736338717
INSTEAD_OF_ZERO = 0x12345678  # a state of zero would stay zero
PIECE = 1 << 16  # draws made in Python at a time
TWO_PI = np.float32(2.0) * np.float32(3.1415926535)


class XorShift64Star:
    """A stream of draws from a seed, an unsigned 64-bit word."""

    def __init__(self, seed: int) -> None:
        self.state = (seed & WORD) or INSTEAD_OF_ZERO

    def draws(self, count: int) -> np.ndarray:
        """Return the next `count` draws, each an integer in [0, 2^32), as uint64."""
        x = self.state
        outputs = np.empty(count, np.uint64)
        for start in range(0, count, PIECE):
            piece = [0] * min(PIECE, count - start)  # a list of integers takes five times an array's memory
            for i in range(len(piece)):
                x ^= x >> 12
                x ^= (x << 25) & WORD
                x ^= x >> 27
                piece[i] = ((x * MULTIPLIER) & WORD) >> 32
            outputs[start : start + PIECE] = piece
        self.state = x
        return outputs

    def uniform(self, count: int) -> np.ndarray:
        """Return float32 numbers in [0, 1), multiples of 2^-24."""
        return (self.draws(count) >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)

    def integers(self, low: int, high: int, size: int) -> np.ndarray:
        """Return `size` integers in [low, high), int64, with the arguments of NumPy's Generator."""
        return low + (self.draws(size) % np.uint64(high - low)).astype(np.int64)

    def normal(self, shape: tuple[int, ...], std: float) -> np.ndarray:
        """Return float32 normal numbers of mean 0, made in pairs from two uniform ones (Box and Muller).

        Computes logarithm, sine and cosine in float64 and rounds: the C library's float32 functions are as accurate;
        NumPy's vectorised ones are not, and vary between processors.
        """
        count = math.prod(shape)
        pairs = self.uniform(2 * ((count + 1) // 2)).reshape(-1, 2)
        u1 = np.maximum(pairs[:, 0], np.float32(1e-7))
        log_u1 = np.log(u1.astype(np.float64)).astype(np.float32)
        radius = np.sqrt(np.float32(-2.0) * log_u1)
        angle = (TWO_PI * pairs[:, 1]).astype(np.float64)
        directions = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
        return (radius[:, None] * directions * np.float32(std)).reshape(-1)[:count].reshape(shape)
