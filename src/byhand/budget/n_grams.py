r"""n-grams: the loss of byte counts on a text, and so how hard it is.

Equation    p_k(b | c) = (n(c b) + w(c) p_{k-1}(b | c')) / (n(c) + w(c)) for a byte b after the k bytes c
            n counts in the training part, w(c) is how many different bytes follow c there, c' is c without its
            first byte, and p before the first order is 1 / 256
Source      Witten & Bell 1991, IEEE Transactions on Information Theory 37(4)
"""

from __future__ import annotations

import numpy as np

from byhand.corpus.text_file import TextFile

ORDERS = 4  # 0 to 3 bytes of context
SAMPLE, PIECES = 1 << 19, 8  # bytes of a longer text that are counted, in pieces spread evenly
SCORED = 1 << 15


def n_gram_losses(train: np.ndarray | TextFile, val: np.ndarray | TextFile) -> list[float]:
    """Return nats per byte on `val` (N,), given 0, 1, 2, ... bytes before, from counts in `train` (M,)."""
    counted, scored = _sample(train, SAMPLE).astype(np.int64), _sample(val, SCORED).astype(np.int64)
    p = np.full(len(scored), 1 / 256)
    losses = []
    for k in range(min(ORDERS, len(counted), len(scored))):
        grams, times = np.unique(_codes(counted, k + 1), return_counts=True)
        contexts, first = np.unique(grams >> 8, return_index=True)
        totals, kinds = np.add.reduceat(times, first), np.diff(first, append=len(grams))
        asked = _codes(scored, k + 1)
        n = _found(grams, times, asked)
        total, w = (_found(contexts, values, asked >> 8) for values in (totals, kinds))
        mixed = (n + w * p[k:]) / np.maximum(total + w, 1)
        p[k:] = np.where(total > 0, mixed, p[k:])  # the first k bytes and unseen contexts back off
        losses.append(float(-np.log(p).mean()))
    return losses


def _codes(text: np.ndarray, k: int) -> np.ndarray:
    """Return each k-gram of bytes as one integer."""
    return sum(text[i : len(text) - k + 1 + i] << 8 * (k - 1 - i) for i in range(k))  # pyright: ignore[reportReturnType]


def _found(keys: np.ndarray, values: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Look up keys by binary search in sorted `keys`; 0 for a missing one."""
    places = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return np.where(keys[places] == asked, values[places], 0)


def _sample(text: np.ndarray | TextFile, size: int) -> np.ndarray:
    if len(text) <= size:
        return text[:]
    length = size // PIECES
    return np.concatenate([text[i : i + length] for i in np.linspace(0, len(text) - length, PIECES).astype(int)])
