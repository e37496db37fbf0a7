"""The kernels: plain loops, with their rules, one file for each equation or group of equations that share a loop.

Every array is a place in one flat float32 `memory`, row-major; token ids lie in the same arena, viewed as int32
`words`. A kernel's arguments are offsets and lengths, so a plan is a table of integers. Kernels and rules register
themselves on import; there is no list of them.
"""

import pkgutil
from importlib import import_module


def load() -> None:
    """Import every file here, which registers all kernels and rules."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        import_module(module.name)
