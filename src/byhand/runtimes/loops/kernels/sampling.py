"""Kernel of sampling: temperature, top-k, top-p and the inverse CDF, as `byhand.runtimes.sampling.draw` does it.

Streams are shared by the threads, and every thread keeps count of position and step for itself, so that
threads share no counters.
"""

from __future__ import annotations

import numpy as np

from byhand.runtimes.loops.kernels.vector.arithmetic import exp, largest
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.program.controls import LATE, SCORED, SETTINGS, STOPPED, TEMPERATURE, TOP_K, TOP_P

F = np.float32


@kernel
def sample(memory, words, controls, signals, logits, allowed, tokens, position, steps, drawn, order, rows, longest,
           vocab, part, parts):  # fmt: skip
    """Draw the next token of each of this thread's streams, as its settings say.

    The first thread sets the stop flag when long waits recur (one is usual, until every thread is awake): all read it
    after the next barrier. So does a thread that finds a logit that is NaN or infinite, or all logits -inf:
    it draws -1, which no reader takes for a token.

    allowed  booleans (rows, V)
    steps    how many this run has made
    order    scratch for two permutations of the vocabulary and a row of logits
    longest  most steps of a run
    """
    step = words[steps]
    words[steps] += 1
    if part == 0 and signals[LATE] > 1:
        signals[STOPPED] = 1
    for b in range(part, rows, parts):
        if words[position + b] < 0:  # idle
            continue
        own, numbers = SETTINGS * b, SETTINGS * rows + step * rows + b
        kept = vector(memory, allowed + b * vocab, vocab)
        z = vector(memory, logits + b * vocab, vocab)
        wrong = 0
        for i in range(vocab):
            z[i] = z[i] if kept[i] != F(0) else F(-np.inf)
            wrong += not z[i] < F(np.inf)
        most = largest(words, logits + b * vocab, vocab)
        if wrong > 0 or most == F(-np.inf):
            signals[STOPPED] = 1
            words[tokens + b] = 0
            words[drawn + step * rows + b] = -1
            continue
        orders = vector(words, order, vocab), vector(words, order + vocab, vocab)
        as_given = vector(memory, order + 2 * vocab, vocab)
        if controls[own + SCORED] != 0.0:
            for i in range(vocab):
                as_given[i] = z[i]
        token = _drawn(
            z, most, controls[own + TEMPERATURE], int(controls[own + TOP_K]), controls[own + TOP_P],
            controls[numbers], *orders,
        )  # fmt: skip
        words[tokens + b] = token
        words[drawn + step * rows + b] = token
        if controls[own + SCORED] != 0.0:
            total = 0.0
            for i in range(vocab):
                total += exp(as_given[i] - most) if as_given[i] > F(-np.inf) else F(0)
            controls[numbers + longest * rows] = as_given[token] - most
            controls[numbers + 2 * longest * rows] = total
    for b in range(rows):
        if words[position + b] >= 0:
            words[position + b] += 1


@compiled
def _drawn(z, most, temperature, top_k, top_p, uniform, order, scratch):
    """Return one id drawn from logits, the largest of which is `most`; the logits are used up."""
    vocab = z.shape[0]
    if temperature == 0.0:
        for i in range(vocab):
            if z[i] >= most:
                return i
        return 0
    for i in range(vocab):
        z[i] /= F(temperature)
    m = most / F(temperature)
    total = 0.0
    if 0 < top_k < vocab or top_p < 1.0:
        _sort(z, order, scratch)
        count = top_k if 0 < top_k < vocab else vocab
        for i in range(vocab):
            z[order[i]] = exp(z[order[i]] - m) if i < count and z[order[i]] > F(-np.inf) else F(0)
            total += z[order[i]]
        before = 0.0
        for i in range(vocab):
            mass = z[order[i]] / total
            if i > 0 and before >= top_p:
                z[order[i]] = F(0)
            before += mass
    else:
        for i in range(vocab):
            z[i] = exp(z[i] - m) if z[i] > F(-np.inf) else F(0)
    total = 0.0
    for i in range(vocab):
        total += z[i]
    below, total, last = uniform * total, 0.0, 0
    for i in range(vocab):
        if z[i] > F(0):
            total += z[i]
            last = i
            if total > below:
                break
    return last


@compiled
def _sort(z, order, scratch):
    """order = the ids from the largest logit to the smallest, of equals the smaller id first: a merge sort."""
    n = z.shape[0]
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and z[order[i]] >= z[order[j]]):
                    scratch[k] = order[i]
                    i += 1
                else:
                    scratch[k] = order[j]
                    j += 1
        for k in range(n):
            order[k] = scratch[k]
        width *= 2
