"""Controls and signals: the numbers that threads and the process share while a plan runs, and where each lies."""

# Slots of the controls, as `kernels/update/adamw.py` lists them; then two for each share: loss, sum of squares.
(WEIGHT, RATE, BETA1, BETA2, EPS, CORRECTION1, CORRECTION2, MAX_NORM, NORM, MATRIX_DECAY, VECTOR_DECAY, GIVEN_UP,
 APPLIED, CONTROLS) = range(14)  # fmt: skip
BARRIERS = 2  # in the update: before gradients are summed, and before they are applied


def loss_slot(number: int) -> int:
    """Return the slot of a share's loss; its sum of squares is the next one."""
    return CONTROLS + 2 * number


def own_signal(number: int) -> int:
    """Return where a share counts the barriers it has passed: each share on its own cache line."""
    return 8 * (number + 1)
