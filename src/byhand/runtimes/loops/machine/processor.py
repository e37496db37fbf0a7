"""Which instructions this processor has, as LLVM sees it (the operating system's permission included)."""

from __future__ import annotations

import os
from functools import cache

# The features that decide speed: vectors, products of 16-bit numbers and bytes in vectors and in tiles (x86), on ARM.
FEATURES = (
    "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512bf16", "amx-bf16", "avxvnni", "avx512vnni", "neon", "bf16",
)  # fmt: skip


@cache
def cpu_features() -> tuple[str, ...]:
    """Return those of FEATURES that compiled code may use, by LLVM's names; none where Numba is not installed."""
    try:
        _, features = target()
    except ImportError:
        return ()
    given = features.split(",")
    return tuple(name for name in FEATURES if f"+{name}" in given)


def target() -> tuple[str, str]:
    """Return the processor's name and its features as LLVM takes them: `+avx2,-avx512f,...`.

    NUMBA_CPU_NAME and NUMBA_CPU_FEATURES, where set, say what to compile for instead.
    """
    from llvmlite import binding

    name = os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name()
    if "NUMBA_CPU_FEATURES" in os.environ:
        return name, os.environ["NUMBA_CPU_FEATURES"]
    found = binding.get_host_cpu_features()
    # LLVM keeps to vectors of 256 bits, since early processors with AVX-512 ran slower with the wider ones. Loops
    # full of arithmetic (GELU) take a third less time with 512.
    wide = ",-prefer-256-bit" if found.get("avx512f") else ""
    return name, found.flatten() + wide
