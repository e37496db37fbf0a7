"""The loops runtime: the model's own graph, recorded once per shape, replayed as compiled loops on the CPU.

    pattern    one-line patterns that match a rule's applications in the recorded graph (`engine/graph/`)
    program    calls on buffers, data only; the builder to which rules append them
    kernels    the compiled loops, with their rules
    lower      graph to program: groups, their calls, the update
    place      lifetimes to offsets
    encode     program to tables of integers, and the compiled loop over a table
    run        the arena, and the threads that replay tables, one call per step; training, decoding
    machine    the interface to Numba, LLVM, BLAS and the processor

Nothing here knows the model: an equation without a kernel runs in NumPy inside the plan. Needs Numba
and SciPy (`pip install byhand[fast]`).
"""

from importlib.util import find_spec

NEEDS = ("numba", "scipy")


def missing() -> list[str]:
    """Return the required packages that are not installed, without importing any."""
    return [package for package in NEEDS if find_spec(package) is None]
