"""Which instructions this processor has, as LLVM sees it (the operating system's permission included)."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

from functools import cache

# What decides speed here: vectors, products of bfloat16 in vectors and in tiles (x86), and the same on ARM.
FEATURES = ("avx2", "fma", "avx512f", "avx512bf16", "amx-bf16", "neon", "bf16")


@cache
def cpu_features() -> tuple[str, ...]:
    """Return those of FEATURES that there are, by LLVM's names; none where Numba is not installed."""
    try:
        from llvmlite import binding
    except ImportError:
        return ()
    found = binding.get_host_cpu_features()
    return tuple(name for name in FEATURES if found.get(name))
