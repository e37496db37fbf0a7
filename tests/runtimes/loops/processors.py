"""Processes that take this processor for a smaller one: compiled code keeps to what that one has."""

import platform

X86 = platform.machine().lower() in ("x86_64", "amd64")
SMALLER = {  # environments by name
    "sse2": {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""},
    "avx2": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+bmi,+bmi2"},
}
LANES = {"sse2": 4, "avx2": 8}  # float32 in a vector
