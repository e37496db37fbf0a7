"""Controls and signals: the numbers that threads and the process share while a plan runs, and where each lies."""

from __future__ import annotations

from collections.abc import Mapping

# Slots of the controls, as `kernels/update/adamw.py` lists them; then two for each share: loss, sum of squares; then
# the rates of groups that have another than lr.
(WEIGHT, RATE, BETA1, BETA2, EPS, CORRECTION1, CORRECTION2, MAX_NORM, NORM, MATRIX_DECAY, VECTOR_DECAY, GIVEN_UP,
 APPLIED, MOMENTUM, AVERAGING, CONTROLS) = range(16)  # fmt: skip
BARRIERS = 2  # in the update: before gradients are summed, and before they are applied


def loss_slot(number: int) -> int:
    """Return the slot of a share's loss; its sum of squares is the next one."""
    return CONTROLS + 2 * number


def end(shares: int) -> int:
    """Return the first slot behind those of so many shares."""
    return loss_slot(shares)


def rate_slots(scales: Mapping[str, float], shares: int) -> dict[float, int]:
    """Return where the rate of each group lies whose rate is not lr, by what lr is multiplied with."""
    return {scale: end(shares) + i for i, scale in enumerate(sorted(set(scales.values()) - {1.0}))}


def own_signal(number: int) -> int:
    """Return where a share counts the barriers it has passed: each share on its own cache line."""
    return 8 * (number + 1)
