"""Controls and signals: the numbers that threads and the process share while a plan runs, and where each lies.

Controls of training, float64

    WEIGHT                     of a row: 1 / tokens of the batch
    MAX_NORM                   to which the gradient is clipped; 0: never
    NORM                       of the gradient before clipping (out)
    GIVEN_UP                   not 0 if a share has given up (in)
    APPLIED                    1 if the update was applied (out)
    AVERAGING                  how far averages go on
    CONTROLS                   from here on two for each share, its loss and its sum of squares; then, for each
                               group of parameters that are updated alike, rate, decay and its kernel's settings

Controls of generation: for each stream TEMPERATURE, TOP_K (0: all), TOP_P (1: all), MIN_P (its logarithm; -inf:
all), PENALTY (1: none) and SCORED (not 0: its log-probabilities are asked for); then, each for every step and stream,
a uniform number, and of a drawn token its logit less the largest and the sum of exponentials (out).

Signals, int64

    RELEASED           not 0: a share has given up, so no thread waits any more
    ARRIVALS           of all threads at barriers; each counts its own in a slot of its own (`own_signal`)
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
    """Return the first slot behind those of so many shares."""
    return loss_slot(shares)


def own_signal(number: int) -> int:
    """Return where a share counts the barriers it has passed: each share on its own cache line."""
    return 8 * (number + 1)
