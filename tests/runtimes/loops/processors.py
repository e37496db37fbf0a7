"""Processes that take this processor for a smaller one: compiled code keeps to what that one has."""

import platform

X86 = platform.machine().lower() in ("x86_64", "amd64")
SMALLER = {  # environments by name
    "sse2": {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""},
    "avx2": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+f16c,+bmi,+bmi2"},
    "avx512": {  # without products of bytes
        "NUMBA_CPU_NAME": "skylake-avx512",
        "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512dq,+avx512vl,-prefer-256-bit",
    },
}
LANES = {"sse2": 4, "avx2": 8, "avx512": 16}  # float32 in a vector
