r"""n-grams: the loss of byte counts on a text, a measure of how hard it is.

Equation    p_k(b | c) = (max(n(c b) - D, 0) + D w(c) q_{k-1}(b | c')) / n(c) for a byte b after the k bytes c;
            where c never occurs it is q_{k-1}(b | c')
            n counts in the training part, w(c) is how many different bytes follow c there, c' is c without its
            first byte; q_k is p_k with how many different bytes stand before c b in place of n(c b), and q before the
            first order is 1 / 256
Source      Kneser & Ney 1995, ICASSP; Chen & Goodman 1999, Computer Speech & Language 13(4): interpolated
"""

from __future__ import annotations

import numpy as np

from byhand.corpus.text_file import TextFile

ORDERS = 9  # 0 to 8 bytes of context
SAMPLE, PIECES = 1 << 21, 16  # bytes of a longer text that are counted, in pieces spread evenly
SCORED = 1 << 16
DISCOUNT = 0.75


def n_gram_losses(train: np.ndarray | TextFile, val: np.ndarray | TextFile, counted: int = SAMPLE) -> list[float]:
    """Return nats per byte on `val` (N,), given 0, 1, 2, ... bytes before, from `counted` bytes of `train` (M,)."""
    seen, scored = _sample(train, min(counted, SAMPLE)), _sample(val, SCORED)
    text, n = np.concatenate([seen, scored]).astype(np.int64), len(seen)
    p, q = (np.full(len(scored), 1 / 256) for _ in "pq")
    # The number of the gram that begins at each byte, and of what comes before its last byte.
    grams, contexts = text, np.zeros_like(text)
    losses = []
    for k in range(min(ORDERS, n, len(scored))):
        times = np.bincount(grams[: n - k], minlength=grams.max() + 1)
        p[k:] = _mixed(times, grams, contexts, q[k:])  # the first k bytes keep what shorter contexts say
        losses.append(float(-np.log(p).mean()))
        longer = np.unique(grams[:-1] << 8 | text[k + 1 :], return_inverse=True)[1]
        place = np.full(longer.max() + 1, -1)  # one of the places of each gram that is a byte longer
        place[longer[: n - k - 1]] = np.arange(n - k - 1)
        before = np.bincount(grams[place[place >= 0] + 1], minlength=len(times))
        q[k:] = _mixed(before, grams, contexts, q[k:])
        grams, contexts = longer, grams
    return losses


def _mixed(times: np.ndarray, grams: np.ndarray, contexts: np.ndarray, shorter: np.ndarray) -> np.ndarray:
    """Return the probability of the last byte of each of the last grams; `shorter` is that after a byte less.

    times  how often each gram occurs, by its number
    """
    contexts = contexts[: len(grams)]
    context = np.zeros_like(times)
    context[grams] = contexts
    known, size = times > 0, contexts.max() + 1
    totals = np.bincount(context[known], times[known], minlength=size)
    kinds = np.bincount(context[known], minlength=size)
    asked, after = grams[-len(shorter) :], contexts[-len(shorter) :]
    mixed = np.maximum(times[asked] - DISCOUNT, 0) + DISCOUNT * kinds[after] * shorter
    return np.where(totals[after] > 0, mixed / np.maximum(totals[after], 1), shorter)


def _sample(text: np.ndarray | TextFile, size: int) -> np.ndarray:
    if len(text) <= size:
        return text[:]
    length = max(1, size // PIECES)
    return np.concatenate([text[i : i + length] for i in np.linspace(0, len(text) - length, PIECES).astype(int)])
