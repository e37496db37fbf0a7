"""Kernel of sampling: `byhand.runtimes.sampling.draw`, from the repetition penalty to the inverse CDF.

Threads divide the streams; each counts positions and steps itself, so they share no counters.
"""

from __future__ import annotations

import numpy as np

from byhand.runtimes.loops.kernels.largest_logits import room_of, smallest_kept
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
_room_of = compiled(room_of)


@kernel
def sample(memory, words, controls, signals, logits, allowed, occurred, tokens, position, steps, drawn, room, rows,
           longest, vocab, part, parts):  # fmt: skip
    """Draw the next token of each of this thread's streams, by its settings.

    The first thread sets the stop flag when long waits recur (one is usual, until every thread is awake); all read it
    after the next barrier. So does a thread that finds a NaN or infinite logit, or all logits -inf: it draws -1,
    which is not a token.

    allowed   booleans (rows, V)
    occurred  booleans (rows, V), for streams with a penalty: the tokens in the text
    steps     number made by this run
    room      scratch: `room_of` words and a row of logits
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
        as_given = vector(memory, room + _room_of(vocab), vocab)
        if controls[own + SCORED] != 0.0:
            for i in range(vocab):
                as_given[i] = z[i]
        largest_given = most
        if controls[own + PENALTY] != 1.0:
            most = _penalise(z, vector(memory, occurred + b * vocab, vocab), F(controls[own + PENALTY]))
        token = _drawn(
            memory, words, z, most, controls[own + TEMPERATURE], int(controls[own + TOP_K]), controls[own + TOP_P],
            F(controls[own + MIN_P]), controls[numbers], room,
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
    """Scale the logits of tokens that have occurred; return the largest of all."""
    most = F(-np.inf)
    for i in range(z.shape[0]):
        if occurred[i] != F(0):
            z[i] = z[i] / penalty if z[i] > F(0) else z[i] * penalty
        most = max(most, z[i])
    return most


@compiled
def _drawn(memory, words, z, most, temperature, top_k, top_p, log_min_p, uniform, room):
    """Return one id drawn from logits with maximum `most`; overwrites the logits."""
    vocab = z.shape[0]
    if temperature == 0.0:
        for i in range(vocab):
            if z[i] >= most:
                return i
        return 0
    for i in range(vocab):
        z[i] /= F(temperature)
    m = most / F(temperature)
    least = max(m + log_min_p, LOWEST)  # above -inf, which marks banned ids
    if 0 < top_k < vocab or top_p < 1.0:
        least = max(least, smallest_kept(memory, words, z, m, top_k, top_p, room))
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
