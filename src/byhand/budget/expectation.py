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
OF_ADAMW = 0.2  # of the tokens: as many teach as much with Muon
STEEPER = 4.0  # by runs on Python's library and on Chinese pages (docs/benchmarks.md)
TOKENS = -0.1  # runs on tokens of w bytes ended at about w^TOKENS of the loss that is expected of their bytes
NEAR, FAR = 0.03, 0.5  # the range: shares of the loss, and of the change by translating it

# The n-grams' losses on Shakespeare's last tenth, with counts from this many bytes before it.
COUNTED = (1_000, 4_000, 16_000, 64_000, 262_144, 524_288)
N_GRAMS = (
    (3.442, 3.354, 3.341, 3.340, 3.341, 3.340),
    (2.937, 2.619, 2.529, 2.496, 2.494, 2.502),
    (2.935, 2.460, 2.242, 2.119, 2.081, 2.087),
    (3.031, 2.530, 2.218, 1.981, 1.866, 1.845),
)


def expected_loss(weights: int, tokens: float, seq_len: float, text_bytes: float, optimizer: str = "muon") -> float:
    """Return the validation loss in nats per byte, on Shakespeare, after training on `text_bytes` of it.

    Tokens and the context count as bytes. What is no matrix takes AdamW in either case.
    """
    passes = tokens / text_bytes
    fresh = text_bytes * (1 + R * (1 - math.exp((1 - passes) / R))) if passes > 1 else tokens
    fresh *= 1.0 if optimizer == "muon" else OF_ADAMW
    unlearnt = B * (1e6 / fresh) ** BETA * (seq_len / 64) ** C
    return min(E + A * (1e5 / weights) ** ALPHA + unlearnt + K * 64 / seq_len, math.log(256))


def most_passes(weights: int, text_bytes: float, optimizer: str = "muon") -> float:
    """Return the passes over a text after which more of them make the validation loss rise.

    More weights for each byte memorise the text sooner, and Muon sooner than AdamW.
    """
    passes = 17 * (1e6 / weights) ** 0.15 if optimizer == "muon" else 40
    return passes * (text_bytes / weights) ** 0.3


@dataclass(frozen=True)
class Range:
    """An expected validation loss in nats per byte, with its bounds."""

    loss: float
    low: float
    high: float

    def of_tokens(self, worth: float) -> Range:
        """Return the range for tokens of `worth` bytes each; runs on tokens of several bytes learn faster."""
        less = worth**TOKENS
        return Range(self.loss * worth * less, self.low * worth * less**2, self.high * worth)


def expected_range(loss: float, n_grams: Sequence[float], counted: int) -> Range:
    """Return the range on a text for an expected `loss` on Shakespeare; see `translated`."""
    here = translated(loss, n_grams, counted)
    off = NEAR * here + FAR * abs(here - loss)
    return Range(here, max(0.0, here - off), here + off)


def translated(loss: float, n_grams: Sequence[float], counted: int) -> float:
    """Return the loss on a text that is equivalent to this loss on Shakespeare.

    n_grams  losses of n-grams on the text, with counts from this many bytes
    A loss between those of two orders on Shakespeare lies between the same two on the text, and beyond them in
    proportion; below the last one it falls faster on an easier text, which has longer repetitions.
    """
    size = math.log(min(max(counted, COUNTED[0]), COUNTED[-1]))
    there = [float(np.interp(size, np.log(COUNTED), losses)) for losses in N_GRAMS[: len(n_grams)]]
    # Orders too sparse to beat a lower one are skipped.
    known = [i for i in range(len(there)) if there[i] == min(there[: i + 1])]
    there, here = [there[i] for i in known], [min(n_grams[: i + 1]) for i in known]
    if loss > there[0]:
        return loss * here[0] / there[0]
    if loss < there[-1]:
        easier = max(0.0, 1 - here[-1] / there[-1])
        return here[-1] * (loss / there[-1]) ** (1 + STEEPER * easier)
    return float(np.interp(loss, there[::-1], here[::-1]))
