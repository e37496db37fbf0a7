"""Kernels for sums of whole arrays: where two paths of the graph meet again and nothing absorbs the addition."""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.native import compiled


@compiled
def copy(memory, x, y, n):
    """y = x."""
    for i in range(n):
        memory[y + i] = memory[x + i]


@compiled
def accumulate(memory, x, y, n):
    """y += x."""
    for i in range(n):
        memory[y + i] += memory[x + i]


@compiled
def zero(memory, y, n):
    """y = 0."""
    for i in range(n):
        memory[y + i] = np.float32(0)


@compiled
def zero_unless(memory, y, n, adds):
    """y = 0 in the first micro-batch of a step."""
    if not adds:
        memory[y : y + n] = np.float32(0)
