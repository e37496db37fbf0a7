"""Processes that take this processor for a smaller one: compiled code keeps to what that one has."""

import os
import platform
import subprocess
import sys

from cli.process import PATIENCE

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


def run_again(tests, name, *options):
    """Run a file's tests in a process that takes this processor for another; return what pytest printed."""
    environment = os.environ | SMALLER[name] | {"BYHAND_TEST_WIDTH": "1"}
    command = [sys.executable, "-m", "pytest", tests, "-q", "--color=no", "-p", "no:cacheprovider", "-W", "error"]
    done = subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, timeout=3 * PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout
