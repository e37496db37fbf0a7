"""The original program's sampling: one uniform number for each token, and the inverse CDF in float32."""

from __future__ import annotations

import numpy as np

from byhand.engine import no_grad
from byhand.equations.softmax import softmax
from byhand.equations.temperature import temperature
from byhand.interop.seed_program.random import XorShift64Star

TEXT = 0xABCDEF123456  # separates the generator of text from the others
COLDEST = 1e-30


def text_generator(seed: int) -> XorShift64Star:
    """Return the generator for drawing text."""
    return XorShift64Star(seed ^ TEXT)


def draw(logits: np.ndarray, rng: XorShift64Star, tau: float, k: int, allowed: np.ndarray) -> int:
    """Return one token id drawn from logits (V,).

    tau      divides the logits; 0 (or too little for float32) takes the likeliest id, of equals the smallest, and
             draws no number
    k        draw among the k likeliest, in decreasing order; 0: among all, in the order of their ids
    allowed  booleans (V,): ids that may be drawn, at least one
    """
    ids = np.flatnonzero(allowed)
    greedy = tau < COLDEST
    if k or greedy:
        ids = ids[np.argsort(-logits[ids], stable=True)]
    if greedy:
        return int(ids[0])
    if k:
        ids = ids[:k]
    with no_grad():
        cumulative = np.cumsum(softmax(temperature(logits[ids], tau=tau)).data, dtype=np.float32)
    # Rounding may leave the sum below the drawn number: then take the last id with a nonzero weight.
    last = np.searchsorted(cumulative, cumulative[-1])
    return int(ids[min(np.searchsorted(cumulative, rng.uniform(1)[0], side="right"), last)])


def likeliest(logits: np.ndarray, count: int) -> list[tuple[int, float]]:
    """Return the `count` likeliest ids and their probabilities, in decreasing order; ties by smaller id."""
    with no_grad():
        p = softmax(logits).data
    return [(int(i), float(p[i])) for i in np.argsort(-p, stable=True)[:count]]
