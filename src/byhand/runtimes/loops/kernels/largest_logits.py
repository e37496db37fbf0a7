"""Top-k and top-p of a row of logits without sorting the vocabulary.

Logits are binned by their distance below the largest; each bin counts them and sums their probabilities. This tells
in which bin top-k and top-p cut; only its logits are sorted. Bins divide octaves: the upper bits of a float32 are its
bin, so bins are ordered like logits.
"""

from __future__ import annotations

import numpy as np

from byhand.runtimes.loops.kernels.vector.arithmetic import exp
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import matrix_of, vector

F, N = np.float32, np.int32
BINS, PER_OCTAVE = 1024, 64
BITS = N(23 - 6)  # low bits of a float32, below those that divide an octave into 64 bins
FIRST = N((127 - 8) * PER_OCTAVE)  # 2^-8 nats; nearer logits share the first bin, those 2^8 or farther the last
LAST, ZERO = N(BINS - 1), N(0)
doubles = matrix_of("float64")


def room_of(vocab: int) -> int:
    """Return the size of `smallest_kept`'s scratch in 32-bit words."""
    return 3 * BINS + 3 * vocab


@compiled
def smallest_kept(memory, words, z, most, top_k, top_p, room):
    """Return the smallest logit that top-k and top-p keep; set those equal to it that they drop to -inf.

    z     logits with maximum `most`; -inf is dropped anyway
    room  scratch of `room_of` words
    """
    vocab = z.shape[0]
    masses, counts = doubles(memory, room, 1, BINS), vector(words, room + 2 * BINS, BINS)
    first = room + 3 * BINS
    second, third = first + vocab, first + 2 * vocab
    order, scratch, bins = vector(words, first, vocab), vector(words, second, vocab), vector(words, third, vocab)
    chances, distances = vector(memory, second, vocab), vector(memory, third, vocab)
    for i in range(vocab):
        distances[i] = most - z[i]
    for i in range(vocab):
        bins[i] = min(max((bins[i] >> BITS) - FIRST, ZERO), LAST)
    for b in range(BINS):
        masses[0, b] = 0.0
        counts[b] = ZERO
    for i in range(vocab):
        counts[bins[i]] += N(z[i] > F(-np.inf))
    smallest, last = F(-np.inf), BINS - 1
    if 0 < top_k < vocab:
        last, before = 0, 0
        while last < BINS - 1 and before + counts[last] < top_k:
            before += counts[last]
            last += 1
        found = _ranked(z, bins, last, order, scratch)
        for j in range(found):
            if before + j < top_k:
                smallest = z[order[j]]
            else:
                z[order[j]] = F(-np.inf)
    if top_p < 1.0:
        for i in range(vocab):
            chances[i] = exp(z[i] - most) if z[i] >= smallest and z[i] > F(-np.inf) else F(0)
        for i in range(vocab):
            masses[0, bins[i]] += chances[i]
        total = 0.0
        for b in range(last + 1):
            total += masses[0, b]
        limit, before, b = top_p * total, 0.0, 0
        while b < last and before + masses[0, b] < limit:
            before += masses[0, b]
            b += 1
        found = _ranked(z, bins, b, order, scratch)
        for j in range(found):
            if before < limit:
                smallest = z[order[j]]
                before += exp(smallest - most)
            else:
                z[order[j]] = F(-np.inf)
    return smallest


@compiled
def _ranked(z, bins, chosen, order, scratch):
    """Return the number of logits in a bin; order = their ids, largest logit first, ties by smaller id."""
    found = 0
    for i in range(z.shape[0]):
        if bins[i] == chosen and z[i] > F(-np.inf):
            order[found] = i
            found += 1
    width = 1
    while width < found:  # a merge sort
        for low in range(0, found, 2 * width):
            middle, high = min(low + width, found), min(low + 2 * width, found)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and z[order[i]] >= z[order[j]]):
                    scratch[k] = order[i]
                    i += 1
                else:
                    scratch[k] = order[j]
                    j += 1
        for k in range(found):
            order[k] = scratch[k]
        width *= 2
    return found
