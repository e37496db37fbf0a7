"""The command line as a process, the way a user starts it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from byhand.files.run_folder import MODEL
from byhand.files.user_cache import cache_folder

PATIENCE = 600  # seconds until a process counts as hung; nothing on a slow machine, compiling too, takes as long

TINY = [
    *("--preset", "tiny", "--seq-len", "16", "--d-model", "16", "--batch-size", "2", "--warmup-steps", "3"),
    *("--steps", "6", "--eval-interval", "3", "--eval-windows", "4", "--save-interval", "2"),
]


def environment(**extra: str) -> dict[str, str]:
    """Return the environment without colour, with one BLAS thread, and with the variables that the test adds."""
    return {**os.environ, "NO_COLOR": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100", **extra}


def with_kernels(folder: Path) -> Path:
    """Put the user's compiled kernels into another cache: compiling them again is the law of other tests."""
    for kept in (cache_folder() or folder).glob("loops-*"):
        shutil.copytree(kept, folder / kept.name)
    return folder


def byhand(
    *arguments: object, cwd: Path | None = None, stdin: bytes = b"", **extra: str
) -> subprocess.CompletedProcess[bytes]:
    """Run `byhand` to its end."""
    command = [sys.executable, "-m", "byhand", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, input=stdin, env=environment(**extra), capture_output=True, timeout=PATIENCE, check=False
    )


def error_line(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the error of a run that failed as it should: exit code 2, one line, no traceback."""
    said = done.stderr.decode()
    assert done.returncode == 2, f"exit code {done.returncode}: {said}"
    assert "Traceback" not in said
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, said
    assert said.rstrip().endswith(errors[0]), f"more was said after the error: {said}"
    return errors[0]


def write_text(path: Path, size: int = 4000) -> Path:
    """A text that a small model can learn something of."""
    line = b"the quick brown fox jumps over the lazy dog; %d\n"
    path.write_bytes(b"".join(line % (i * i) for i in range(size // 40))[:size])
    return path


def weights(run: Path, step: int) -> str:
    """Return the SHA-256 of a checkpoint's weights."""
    return hashlib.sha256((run / f"step-{step:08d}" / MODEL).read_bytes()).hexdigest()


COUNTING = """
import sys
calls = 0
def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call") and not frame.f_code.co_filename.startswith("<frozen importlib")
sys.setprofile(count)
from byhand.cli.main import main
code = main(sys.argv[1:])
sys.setprofile(None)
print(f"{calls} calls", file=sys.stderr)
sys.exit(code)
"""


def function_calls(*arguments: str) -> int:
    """Return how many functions a command calls: a measure of its time that is the same on every machine.

    Those that look for modules are left out: they are more for each entry of Python's path.
    """
    command = [sys.executable, "-c", COUNTING, *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, timeout=PATIENCE, check=True)
    return int(done.stderr.split()[-2])
