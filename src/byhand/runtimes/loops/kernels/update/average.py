"""Kernel of the averages: they follow the parameters, whatever updates these."""

import numpy as np

from byhand.runtimes.loops.kernels.update.gradient_norm import clip_of
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.program.controls import AVERAGING

F = np.float32


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
