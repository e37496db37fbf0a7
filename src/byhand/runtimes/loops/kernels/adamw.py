"""Kernels of `adamw`: the shares' gradients are summed, measured, clipped and applied, a range for each thread.

controls    0 weight of a row, 1 lr, 2 beta1, 3 beta2, 4 eps, 5 1 / (1 - beta1^t), 6 1 / (1 - beta2^t), 7 max_norm,
            8 the gradient's norm (out), 9 and 10 weight decay of matrices and of vectors; then for each share its
            loss and its sum of squares
"""

# pyright: reportMissingImports=false
import math

import numpy as np

from byhand.runtimes.loops.native import compiled

F = np.float32


@compiled
def sum_shares(memory, controls, gradient, stride, shares, n, slot):
    """gradient += the other shares' gradients, in order; controls[slot] += sum of squares.

    Squares are added in float64 over blocks of float32, so that the norm of millions of numbers stays exact enough.
    """
    total = 0.0
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        for k in range(1, shares):
            other = gradient + k * stride
            for i in range(start, stop):
                memory[gradient + i] += memory[other + i]
        squares = F(0)
        for i in range(start, stop):
            squares += memory[gradient + i] * memory[gradient + i]
        total += squares
    controls[slot] += total


@compiled
def adamw(memory, controls, theta, gradient, m, v, n, decay, slot, shares):
    """Update theta, m and v in place; nothing at all if the norm of the gradient is not finite."""
    squares = 0.0
    for k in range(shares):
        squares += controls[slot + 2 * k]
    norm = math.sqrt(squares)
    controls[8] = norm
    if not math.isfinite(norm):
        return
    clip = F(controls[7] / norm) if 0.0 < controls[7] < norm else F(1.0)
    lr, eps = F(controls[1]), F(controls[4])
    beta1, beta2 = F(controls[2]), F(controls[3])
    one1, one2 = F(1.0 - controls[2]), F(1.0 - controls[3])
    wd = F(controls[decay])
    correct1, correct2 = F(controls[5]), F(controls[6])
    for i in range(n):
        g = memory[gradient + i] * clip
        mean = beta1 * memory[m + i] + one1 * g
        square = beta2 * memory[v + i] + one2 * (g * g)
        memory[m + i] = mean
        memory[v + i] = square
        direction = mean * correct1 / (np.sqrt(square * correct2) + eps)
        memory[theta + i] -= lr * (direction + wd * memory[theta + i])
