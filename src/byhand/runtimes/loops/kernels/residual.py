"""Kernels for sums of whole arrays: where two paths of the graph meet again and nothing absorbs the addition."""

# pyright: reportMissingImports=false
import numpy as np

from byhand.runtimes.loops.native import compiled, vector


@compiled
def copy(memory, x, y, n):
    """y = x."""
    vector(memory, y, n)[:] = vector(memory, x, n)


@compiled
def accumulate(memory, x, y, n):
    """y += x."""
    a, o = vector(memory, x, n), vector(memory, y, n)
    for i in range(n):
        o[i] += a[i]


@compiled
def zero(memory, y, n, unless):
    """y = 0; not where `unless` says that a micro-batch before has written there."""
    if not unless:
        vector(memory, y, n)[:] = np.float32(0)
