"""Kernels of `muon`: one thread updates a whole matrix, so that its bits do not depend on the number of threads.

`muon_momentum` writes the momentum and, divided by its norm, Nesterov's direction; products and `newton_schulz` make
it nearly orthogonal; `muon` applies it. A matrix may be packed with others side by side: `stride` is the distance of
its rows. Without an update (see `gradient_norm.py`) the momentum stays unchanged.
"""

import math

import numpy as np

from byhand.equations.orthogonalise import A, B, C
from byhand.runtimes.loops.kernels.update.gradient_norm import clip_of
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.views import matrix, vector

F = np.float32
EPS = 1e-7


def settings(t, *, momentum, **_):
    """Return the control that the kernels read after rate and decay."""
    return (momentum,)


@kernel(computes="muon", settings=settings)
def muon(memory, controls, theta, x, rows, columns, stride, settings, slot, shares):
    """theta -= lr (s x + wd theta),  s = sqrt(max(1, columns / rows))."""
    if clip_of(controls, slot, shares) < F(0):
        return
    lr, wd = F(controls[settings]), F(controls[settings + 1])
    s = F(math.sqrt(max(1.0, columns / rows)))
    for i in range(rows):
        p, direction = vector(memory, theta + i * stride, columns), vector(memory, x + i * columns, columns)
        for j in range(columns):
            p[j] -= lr * (s * direction[j] + wd * p[j])


@kernel(computes="muon")
def muon_momentum(memory, controls, gradient, m, x, rows, columns, stride, settings, slot, shares):
    """m' = mu m + (1 - mu) g;  x = n / (|n| + eps),  n = mu m' + (1 - mu) g."""
    clip = clip_of(controls, slot, shares)
    if clip < F(0):
        return
    mu, one = F(controls[settings + 2]), F(1.0 - controls[settings + 2])
    total = 0.0
    for i in range(rows):
        g, mean = vector(memory, gradient + i * stride, columns), vector(memory, m + i * stride, columns)
        out = vector(memory, x + i * columns, columns)
        squares = F(0)
        for j in range(columns):
            d = g[j] * clip
            kept = mu * mean[j] + one * d
            ahead = mu * kept + one * d
            mean[j] = kept
            out[j] = ahead
            squares += ahead * ahead
        total += squares
    scale = F(1.0 / (math.sqrt(total) + EPS))
    whole = vector(memory, x, rows * columns)
    for i in range(rows * columns):
        whole[i] *= scale


@kernel(computes="orthogonalise")
def newton_schulz(memory, gram, squared, n):
    """squared = a I + b A + c A A, of A and A A: the next X is its product with X."""
    once, twice = matrix(memory, gram, n, n), matrix(memory, squared, n, n)
    for i in range(n):
        for j in range(n):
            twice[i, j] = F(B) * once[i, j] + F(C) * twice[i, j]
        twice[i, i] += F(A)
