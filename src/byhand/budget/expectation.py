"""Expectation: the validation loss of a shape after a number of tokens of a text, where tokens are bytes.

Equation    loss = E + A (1e5 / N)^a + B (1e6 / D)^b (T / 64)^c + K 64 / T   for N weights in blocks, D tokens
            where passes p > 1 over U bytes count less and less: D = U (1 + R (1 - exp((1 - p) / R)))
Source      Hoffmann et al. 2022, arXiv:2203.15556, eq. 10; Muennighoff et al. 2023, arXiv:2305.16264, eq. 5;
            the terms of the context T are ours. Fitted to runs on tinyshakespeare (benchmarks/loss_law.py), all but E
            and R: runs of minutes cannot tell E from smaller powers. N as in Kaplan et al. 2020, arXiv:2001.08361.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

E, A, ALPHA, B, BETA, C, K, R = 1.25, 0.22, 0.345, 0.141, 0.694, 0.405, 0.0951, 29.7
OF_ADAMW = 0.2  # share of the tokens from which Muon learns as much
TOKENS = -0.1  # runs on tokens of w bytes ended at about w^TOKENS of the loss expected of their bytes
EASIER = 1.1  # power of the n-grams' ratio: 50 runs on 15 texts of other kinds (docs/benchmarks.md)
SHARE, A_WEIGHT = 0.5, 5  # the n-grams count this share of what is read, at most so many bytes per weight
# The range, met by nine runs of ten: shares of the loss, and of the change by translating.
NEAR, FAR = 0.06, 0.25

# The loss of n-grams on Shakespeare's last tenth, counted on so many bytes before it; the last count is half of them.
COUNTED = (256, 1_024, 4_096, 16_384, 65_536, 262_144, 501_927)
N_GRAMS = (3.277, 2.863, 2.412, 2.118, 1.826, 1.651, 1.584)


def expected_loss(weights: int, tokens: float, seq_len: float, text_bytes: float, by_matrix: bool = True) -> float:
    """Return the validation loss in nats per byte, on Shakespeare, after training on `text_bytes` of it.

    Tokens and the context are in bytes. Parameters other than matrices use AdamW in either case.
    """
    passes = tokens / text_bytes
    fresh = text_bytes * (1 + R * (1 - math.exp((1 - passes) / R))) if passes > 1 else tokens
    fresh *= 1.0 if by_matrix else OF_ADAMW
    unlearnt = B * (1e6 / fresh) ** BETA * (seq_len / 64) ** C
    return min(E + A * (1e5 / weights) ** ALPHA + unlearnt + K * 64 / seq_len, math.log(256))


def most_passes(weights: int, text_bytes: float, by_matrix: bool = True) -> float:
    """Return the number of passes over a text beyond which the validation loss rises.

    More weights per byte memorise the text sooner, and Muon sooner than AdamW.
    """
    passes = 17 * (1e6 / weights) ** 0.15 if by_matrix else 40
    return passes * (text_bytes / weights) ** 0.3


@dataclass(frozen=True)
class Range:
    """An expected validation loss in nats per byte, with its bounds."""

    loss: float
    low: float
    high: float

    def of_tokens(self, worth: float, vocab_size: int) -> Range:
        """Return the range for tokens of `worth` bytes each; runs on tokens of several bytes learn faster.

        Before its first step a model gives each of `vocab_size` tokens the same probability.
        """
        less, first = worth**TOKENS, math.log(vocab_size)
        low, loss = (min(of_bytes * worth, first) for of_bytes in (self.low * less**2, self.loss * less))
        return Range(loss, low, self.high * worth)


def bytes_to_count(weights: int, tokens: float, text_bytes: float) -> int:
    """Return from how many bytes n-grams learn as much as a model with `weights` in blocks does from `tokens`.

    A model with few weights keeps little of what it reads; n-grams keep all.
    """
    return max(1, int(min(SHARE * min(tokens, text_bytes), A_WEIGHT * weights)))


def expected_range(loss: float, n_grams: Sequence[float], counted: int) -> Range:
    """Return the range on a text for an expected `loss` on Shakespeare; see `translated`."""
    here = translated(loss, n_grams, counted)
    off = NEAR * here + FAR * abs(here - loss)
    return Range(here, max(0.0, here - off), here + off)


def translated(loss: float, n_grams: Sequence[float], counted: int) -> float:
    """Return the loss on a text that is equivalent to this loss on Shakespeare.

    Equation    here = loss (n / m)^EASIER for the best n-grams' losses n on the text and m on Shakespeare
    n_grams  their losses on the text, with counts from so many bytes
    """
    there = float(np.interp(math.log(counted), np.log(COUNTED), N_GRAMS))
    return min(loss * (min(n_grams) / there) ** EASIER, math.log(256))
