"""The loops runtime: the model's own graph, recorded once for a shape, replayed as compiled loops on the CPU.

    graph      run the ordinary model code once; keep its applications in order
    kernels    the compiled loops, with the rules that say which equations they compute
    lowering   group the applications by the rules, turn the groups into kernel calls on buffers, give the buffers
               their places in one flat arena, and write the calls as tables of integers
    run        the compiled loop that walks a table, the only call in a step; the threads; training and decoding
    machine    the interface to Numba, LLVM, BLAS and the processor

Nothing here knows the model: an equation without a kernel runs in NumPy inside the plan. Needs Numba
and SciPy (`pip install byhand[fast]`).
"""

from importlib.util import find_spec

NEEDS = ("numba", "scipy")


def missing() -> list[str]:
    """Return the packages that this runtime needs and cannot find (none of them is imported)."""
    return [package for package in NEEDS if find_spec(package) is None]
