"""Which instructions this processor has, as LLVM sees it (the operating system's permission included)."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

# The features that decide speed: vectors, products of 16-bit numbers and bytes in vectors and in tiles (x86), on ARM.
FEATURES = (
    "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512bf16", "amx-tile", "amx-bf16",
    "avxvnni", "avx512vnni", "neon", "bf16",
)  # fmt: skip
AMX_FEATURES, PAIR_FEATURES = (
    ("amx-tile", "amx-bf16", "avx512bw"),
    ("avx512f", "avx512bf16"),
)  # what products of bfloat16 need


@cache
def cpu_features() -> tuple[str, ...]:
    """Return those of FEATURES that compiled code may use, by LLVM's names; none where Numba is not installed."""
    try:
        _, features = target()
    except ImportError:
        return ()
    given = features.split(",")
    return tuple(name for name in FEATURES if f"+{name}" in given)


ARCH_PRCTL, REQUEST, TILES = 158, 0x1023, 18  # Linux: a system call, what it is asked for, and of what


@cache
def amx_granted() -> bool:
    """Return whether this process may use the tiles of AMX; Linux grants them to a process that asks, once.

    It is asked before threads start: all of them may use them then.
    """
    if not {*AMX_FEATURES} <= {*cpu_features()} or not sys.platform.startswith("linux"):
        return False
    return ask_for_tiles() == 0


def ask_for_tiles() -> int:
    """Make the system call; 0 if it is granted."""
    return ctypes.CDLL(None, use_errno=True).syscall(ARCH_PRCTL, REQUEST, TILES)


def multiplies_pairs() -> bool:
    """Return whether products of pairs of bfloat16 (AVX512-BF16) are faster than those of float32.

    AMD's tables say that one takes as long as a multiply-add of float32, so it does twice as much; no such processor
    was measured. On an Intel one it takes four times as long: there float32 is twice as fast.
    """
    return {*PAIR_FEATURES} <= {*cpu_features()} and target()[0].startswith("znver")


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
