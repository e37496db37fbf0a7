"""Kernels of every update: sum gradients over the shares, clip them, average parameters.

All threads decide from the same numbers whether to update, so either all do or none. A share gives up only before the
barriers around `sum_shares`, which no other share passes without it.
"""

import math

import numpy as np

from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.program.controls import APPLIED, AVERAGING, GIVEN_UP, MAX_NORM, NORM

F = np.float32
BLOCK = 1024


@compiled
def clip_of(controls, slot, shares):
    """Return the factor of gradients; -1 if loss or norm is not finite, or if a share has given up."""
    loss, squares = 0.0, 0.0
    for k in range(shares):
        loss += controls[slot - 1 + 2 * k]
        squares += controls[slot + 2 * k]
    norm = math.sqrt(squares)
    controls[NORM] = norm
    if not (math.isfinite(loss) and math.isfinite(norm)) or controls[GIVEN_UP] != 0.0:
        return F(-1.0)
    controls[APPLIED] = 1.0
    return F(controls[MAX_NORM] / norm) if 0.0 < controls[MAX_NORM] < norm else F(1.0)


@kernel
def sum_shares(memory, controls, gradient, stride, shares, n, slot):
    """gradient += the other shares' gradients, in order; controls[slot] += sum of squares.

    Blocks of squares are summed in float32, their sums in float64: accurate enough for millions of numbers.
    """
    total = 0.0
    for start in range(0, n, BLOCK):
        width = min(BLOCK, n - start)
        g = vector(memory, gradient + start, width)
        for k in range(1, shares):
            other = vector(memory, gradient + start + k * stride, width)
            for i in range(width):
                g[i] += other[i]
        squares = F(0)
        for i in range(width):
            squares += g[i] * g[i]
        total += squares
    controls[slot] += total


@kernel
def average(memory, controls, theta, average, rows, width, stride, slot, shares):
    """average += (1 - d) (theta - average) in rows `stride` apart; nothing if there is no update."""
    if clip_of(controls, slot, shares) < F(0):
        return
    part = F(controls[AVERAGING])
    for i in range(rows):
        p, mean = vector(memory, theta + i * stride, width), vector(memory, average + i * stride, width)
        for j in range(width):
            mean[j] += part * (p[j] - mean[j])
