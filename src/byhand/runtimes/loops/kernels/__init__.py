"""The kernels: plain loops, a file for each equation or for those that share a loop, with the rules of their use.

Every array is a place in one flat float32 `memory`, row-major; token ids lie in the same arena, seen as int32
`words`. A kernel's arguments are offsets and lengths, so that a plan is a table of integers. Kernels and rules
register themselves when their file is imported; no list of them is kept anywhere.
"""

import pkgutil
from importlib import import_module


def load() -> None:
    """Import every file here, so that all kernels and rules are registered."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        import_module(module.name)
