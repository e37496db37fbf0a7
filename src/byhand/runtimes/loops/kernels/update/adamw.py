"""Kernel of `adamw`: updates a range of parameters under one rule, all or none (see `gradient_norm.py`)."""

import numpy as np

from byhand.runtimes.loops.kernels.update.gradient_norm import clip_of
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import vector

F = np.float32


def settings(t, *, beta1, beta2, eps, **_):
    """Return the controls that the kernel reads after rate and decay, for step t."""
    return beta1, beta2, eps, 1 / (1 - beta1**t), 1 / (1 - beta2**t)


@kernel(computes="adamw", settings=settings)
def adamw(memory, controls, theta, gradient, m, v, n, settings, slot, shares):
    """Update theta, m and v in place, unless there is no update."""
    clip = clip_of(controls, slot, shares)
    if clip < F(0):
        return
    lr, wd, eps = F(controls[settings]), F(controls[settings + 1]), F(controls[settings + 4])
    beta1, beta2 = F(controls[settings + 2]), F(controls[settings + 3])
    one1, one2 = F(1.0 - controls[settings + 2]), F(1.0 - controls[settings + 3])
    correct1, correct2 = F(controls[settings + 5]), F(controls[settings + 6])
    p, g = vector(memory, theta, n), vector(memory, gradient, n)
    first, second = vector(memory, m, n), vector(memory, v, n)
    for i in range(n):
        d = g[i] * clip
        mean = beta1 * first[i] + one1 * d
        square = beta2 * second[i] + one2 * (d * d)
        first[i] = mean
        second[i] = square
        p[i] -= lr * (mean * correct1 / (np.sqrt(square * correct2) + eps) + wd * p[i])
