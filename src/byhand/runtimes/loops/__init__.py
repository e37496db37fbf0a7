"""The loops runtime: the model's own graph, recorded once for a shape, replayed as compiled loops on the CPU.

    record   run the ordinary model code once; keep its applications in order
    groups   which neighbouring applications become one (the fusions, each with its reason)
    builder    turn every group, forward and back, into kernel calls on buffers (both are in `calls`)
    layout   give every buffer its place in one flat arena, by lifetime
    plan     the calls as a table of integers, and as a table to read
    replay   the compiled loop that walks the table: the only call in a step
    team     the threads, each with a share of the batch

Nothing here knows the model: an equation without a kernel runs its reference halves inside the plan. Needs Numba
and SciPy (`pip install byhand[fast]`).
"""

from importlib.util import find_spec

NEEDS = ("numba", "scipy")


def missing() -> list[str]:
    """Return the packages that this runtime needs and cannot find (none of them is imported)."""
    return [package for package in NEEDS if find_spec(package) is None]
