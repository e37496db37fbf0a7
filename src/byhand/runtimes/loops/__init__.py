"""The loops runtime: the model's own graph, recorded once for a shape, replayed as compiled loops on the CPU.

    pattern    one line that says which applications of the recorded graph (`engine/graph/`) a rule covers
    program    calls on buffers, data only; the builder to which a group's rule appends them
    kernels    the compiled loops, with their rules
    lower      graph to program: groups, their calls, the update
    place      lifetimes to offsets
    encode     program to tables of integers, and the compiled loop over a table
    run        the arena and the threads that replay tables, the only call in a step; training, decoding
    machine    the interface to Numba, LLVM, BLAS and the processor

Nothing here knows the model: an equation without a kernel runs in NumPy inside the plan. Needs Numba
and SciPy (`pip install byhand[fast]`).
"""

from importlib.util import find_spec

NEEDS = ("numba", "scipy")


def missing() -> list[str]:
    """Return the packages that this runtime needs and cannot find (none of them is imported)."""
    return [package for package in NEEDS if find_spec(package) is None]
