"""Kernel of sampling: what `byhand.runtimes.sampling.draw` does, from the repetition penalty to the inverse CDF.

Streams are shared by the threads, and every thread keeps count of position and step for itself, so that
threads share no counters.
"""

from __future__ import annotations

import numpy as np

from byhand.runtimes.loops.kernels.vector.arithmetic import exp, largest
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.program.controls import (
    LATE,
    MIN_P,
    PENALTY,
    SCORED,
    SETTINGS,
    STOPPED,
    TEMPERATURE,
    TOP_K,
    TOP_P,
)  # fmt: skip

F = np.float32
LOWEST = F(np.finfo(F).min)


@kernel
def sample(memory, words, controls, signals, logits, allowed, occurred, tokens, position, steps, drawn, order, rows,
           longest, vocab, part, parts):  # fmt: skip
    """Draw the next token of each of this thread's streams, as its settings say.

    The first thread sets the stop flag when long waits recur (one is usual, until every thread is awake): all read it
    after the next barrier. So does a thread that finds a logit that is NaN or infinite, or all logits -inf:
    it draws -1, which no reader takes for a token.

    allowed   booleans (rows, V)
    occurred  booleans (rows, V), of streams with a penalty: which tokens the text has
    steps     how many this run has made
    order     scratch for two permutations of the vocabulary and a row of logits
    longest   most steps of a run
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
        largest_given = most
        if controls[own + PENALTY] != 1.0:
            most = _penalise(z, vector(memory, occurred + b * vocab, vocab), F(controls[own + PENALTY]))
        token = _drawn(
            z, most, controls[own + TEMPERATURE], int(controls[own + TOP_K]), controls[own + TOP_P],
            F(controls[own + MIN_P]), controls[numbers], *orders,
        )  # fmt: skip
        if controls[own + PENALTY] != 1.0:
            vector(memory, occurred + b * vocab, vocab)[token] = F(1)
        words[tokens + b] = token
        words[drawn + step * rows + b] = token
        if controls[own + SCORED] != 0.0:
            total = 0.0
            for i in range(vocab):
                total += exp(as_given[i] - largest_given) if as_given[i] > F(-np.inf) else F(0)
            controls[numbers + longest * rows] = as_given[token] - largest_given
            controls[numbers + 2 * longest * rows] = total
    for b in range(rows):
        if words[position + b] >= 0:
            words[position + b] += 1


@compiled
def _penalise(z, occurred, penalty):
    """Scale the logits of what has occurred, and return the largest of all."""
    most = F(-np.inf)
    for i in range(z.shape[0]):
        if occurred[i] != F(0):
            z[i] = z[i] / penalty if z[i] > F(0) else z[i] * penalty
        most = max(most, z[i])
    return most


@compiled
def _drawn(z, most, temperature, top_k, top_p, log_min_p, uniform, order, scratch):
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
    least = max(m + log_min_p, LOWEST)  # not -inf, as what is banned has no probability
    total = 0.0
    if 0 < top_k < vocab or top_p < 1.0:
        _sort(z, order, scratch)
        count = top_k if 0 < top_k < vocab else vocab
        likely = 0  # of the sorted logits, by min-p
        while likely < count and z[order[likely]] >= least:
            likely += 1
        for i in range(vocab):
            z[order[i]] = exp(z[order[i]] - m) if i < count and z[order[i]] > F(-np.inf) else F(0)
            total += z[order[i]]
        before = 0.0
        for i in range(vocab):
            mass = z[order[i]] / total
            if i > 0 and (before >= top_p or i >= likely):
                z[order[i]] = F(0)
            before += mass
    else:
        for i in range(vocab):
            z[i] = exp(z[i] - m) if z[i] >= least else F(0)
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
