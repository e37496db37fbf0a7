"""This processor's instructions, as LLVM reports them (if the operating system permits them)."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

# The features that decide speed: vectors; 16-bit and byte products in vectors and tiles (x86); ARM's.
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
    """Return the FEATURES that compiled code may use, by LLVM's names; none if Numba is not installed."""
    try:
        _, features = target()
    except ImportError:
        return ()
    given = features.split(",")
    return tuple(name for name in FEATURES if f"+{name}" in given)


ARCH_PRCTL, REQUEST, TILES = 158, 0x1023, 18  # Linux: a system call, its operation, and the feature


@cache
def amx_granted() -> bool:
    """Return whether this process may use the tiles of AMX; on Linux it must request them once.

    Request before threads start, so that all may use them.
    """
    if not {*AMX_FEATURES} <= {*cpu_features()} or not sys.platform.startswith("linux"):
        return False
    return ask_for_tiles() == 0


def ask_for_tiles() -> int:
    """Make the system call; 0 if granted."""
    return ctypes.CDLL(None, use_errno=True).syscall(ARCH_PRCTL, REQUEST, TILES)


def multiplies_pairs() -> bool:
    """Return whether products of pairs of bfloat16 (AVX512-BF16) are faster than those of float32.

    By AMD's tables one takes as long as a float32 multiply-add and does twice the work; not measured. On a measured
    Intel processor it takes four times as long, so float32 is twice as fast.
    """
    return {*PAIR_FEATURES} <= {*cpu_features()} and target()[0].startswith("znver")


def target() -> tuple[str, str]:
    """Return the processor's name and features in LLVM's notation: `+avx2,-avx512f,...`.

    NUMBA_CPU_NAME and NUMBA_CPU_FEATURES override them.
    """
    from llvmlite import binding

    name = os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name()
    if "NUMBA_CPU_FEATURES" in os.environ:
        return name, os.environ["NUMBA_CPU_FEATURES"]
    found = binding.get_host_cpu_features()
    # LLVM prefers 256-bit vectors, since early AVX-512 processors slowed down with wider ones. Loops
    # full of arithmetic (GELU) take a third less time with 512 bits.
    wide = ",-prefer-256-bit" if found.get("avx512f") else ""
    return name, found.flatten() + wide
