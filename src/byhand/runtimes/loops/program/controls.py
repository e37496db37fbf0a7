"""Controls and signals: the numbers that threads and the process share while a plan runs, and their slots.

Controls of training, float64

    WEIGHT                     of a row: 1 / tokens of the batch
    MAX_NORM                   the gradient's clipping norm; 0: no clipping
    NORM                       of the gradient before clipping (out)
    GIVEN_UP                   not 0 if a share has given up (in)
    APPLIED                    1 if the update was applied (out)
    AVERAGING                  weight of the new parameters in their averages, 1 - decay
    CONTROLS                   from here on two for each share, its loss and its sum of squares; then, for each
                               group of parameters that are updated alike, rate, decay and its kernel's settings

Controls of generation: for each stream TEMPERATURE, TOP_K (0: all), TOP_P (1: all), MIN_P (its logarithm; -inf:
all), PENALTY (1: none) and SCORED (not 0: log-probabilities are requested); then, for each step and stream, a uniform
number, and the drawn token's logit minus the largest, and the sum of exponentials (out).

Signals, int64

    RELEASED           not 0: a share has given up, so no thread waits any more
    ARRIVALS           of all threads at barriers; each thread also counts its own (`own_signal`)
    LATE               long waits at barriers: another program uses a core
    STOPPED            not 0: the threads stop after this token
"""

from __future__ import annotations

WEIGHT, MAX_NORM, NORM, GIVEN_UP, APPLIED, AVERAGING, CONTROLS = range(7)
TEMPERATURE, TOP_K, TOP_P, MIN_P, PENALTY, SCORED, SETTINGS = range(7)
RELEASED, ARRIVALS, LATE, STOPPED = range(4)
BARRIERS = 2  # in the update: before gradients are summed, and before they are applied


def loss_slot(number: int) -> int:
    """Return the slot of a share's loss; its sum of squares is the next one."""
    return CONTROLS + 2 * number


def end(shares: int) -> int:
    """Return the first slot behind those of the shares."""
    return loss_slot(shares)


def own_signal(number: int) -> int:
    """Return the slot in which a share counts its barriers: each share has its own cache line."""
    return 8 * (number + 1)
