"""The private environment .venv of a checkout, made by venv and pip.

.venv.stamp says what .venv holds: its place and Python, and a digest for each group of packages. Lines are only
added: CHANGING before venv or pip begins, and after it every line that holds again. So after an interrupt at any
moment CHANGING is the last line, and .venv is rebuilt. A process that changes .venv holds a lock on that file, and so
does the installer in case this process is killed; Windows has no lock.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parents[1]
VENV, STAMP = ROOT / ".venv", ROOT / ".venv.stamp"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
PLACE = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]} {VENV}"
CHANGING = "changing"
GROUPS = {  # the contents of requirements/GROUP.txt; each group needs the ones before it
    "run": ["--extra", "plot"],
    "fast": ["--extra", "fast"],
    "xla": ["--extra", "xla"],
    "test": ["--group", "test"],
    "lint": ["--group", "lint"],
    "docs": ["--group", "docs"],
    "release": ["--group", "release"],
}
CONTENTS = {
    "run": "byhand and matplotlib",
    "fast": "numba",
    "xla": "JAX",
    "test": "pytest and Hypothesis",
    "lint": "linters",
    "docs": "Sphinx",
    "release": "build and twine",
}
OPTIONAL = ("fast", "xla")  # left out, with a line, on platforms without wheels


def fail(line: str) -> NoReturn:
    """Print what is wrong and exit with code 2."""
    print(f"error: {line}", file=sys.stderr)
    sys.exit(2)


def prepare(group: str) -> None:
    """Install a group's packages, and those of the groups before it, unless they are there."""
    wanted = {name: f"{name} {_digest(name)}" for name in [*GROUPS][: [*GROUPS].index(group) + 1]}
    try:
        if STAMP.exists() and PYTHON.exists() and {PLACE, *wanted.values()} <= {*_sound(STAMP.read_text("utf-8"))}:
            return
        with _locked() as lock:
            _make(lock)
            for name in (name for name, line in wanted.items() if line not in _lines(lock)):
                _install_group(name, wanted[name], lock)
    except OSError as error:
        fail(f"cannot prepare {VENV}: {error.filename or ''}: {error.strerror}. Make this folder writable.")


def install(*words: str) -> str:
    """Install a package that is in no group, with flags of pip before it; return why it cannot be, or ""."""
    print(f"installing {words[-1]}", file=sys.stderr, flush=True)
    with _locked() as lock:
        return _pip(lock, *words)


@contextmanager
def _locked() -> Iterator[IO[str]]:
    """Hold .venv.stamp; wait, with a line, while another process does."""
    with STAMP.open("a+", encoding="utf-8") as lock:
        if os.name == "posix":
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("another dev.py is installing; waiting for it", file=sys.stderr, flush=True)
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def _make(lock: IO[str]) -> None:
    """Make or rebuild .venv unless it is sound. One that dev.py did not make is left alone."""
    if PLACE in _lines(lock) and PYTHON.exists():
        return
    if os.path.lexists(VENV):
        ours = STAMP.stat().st_size or any(VENV.glob("byhand-*"))  # as earlier versions marked theirs
        if VENV.is_symlink() or not VENV.is_dir() or not ours:
            fail(f"{VENV} is not from dev.py. Move it away and run the same command again.")
        print(
            f"making {VENV.name} anew: it is unfinished, or of another place or Python", file=sys.stderr, flush=True
        )
    base = getattr(sys, "_base_executable", sys.executable)  # .venv's own Python may run this
    if why := _change(lock, base, "-m", "venv", "--clear", VENV, before=[], after=[PLACE]):
        fail(f"cannot make {VENV.name}: {why}. Install python3-venv and run the same command again.")


def _install_group(name: str, line: str, lock: IO[str]) -> None:
    what = f"{CONTENTS[name]} for `dev.py {' '.join(sys.argv[1:2])}`"
    print(f"installing {what} into {VENV.name}, once", file=sys.stderr, flush=True)
    wheels = ["--only-binary", ":all:"] if name in OPTIONAL else []
    why = _pip(lock, *wheels, "--require-hashes", "-r", ROOT / "requirements" / f"{name}.txt")
    if name == "run" and not why:
        why = _pip(lock, "--no-deps", "-e", ROOT)
    if why and name not in OPTIONAL:
        fail(f"cannot install {what}: {why}. Check the network and run the same command again.")
    if why:  # the next command tries again: the network may have been away
        print(f"going on without {CONTENTS[name]}: {why}", file=sys.stderr, flush=True)
    else:
        _add(lock, [line])


def _pip(lock: IO[str], *arguments: str | Path) -> str:
    """Install into .venv; return why it failed, or "". pip changes nothing before it has every file."""
    command = (PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments)
    return _change(lock, *command, before=_lines(lock), after=_lines(lock))


def _change(lock: IO[str], *command: str | Path, before: list[str], after: list[str]) -> str:
    """Run venv or pip; return its last words if it failed, or "".

    before, after  the lines that hold if it fails, or succeeds
    """
    _add(lock, [CHANGING])
    held = {"pass_fds": (lock.fileno(),)} if os.name == "posix" else {}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ended = subprocess.run(command, cwd=ROOT, check=False, **pipes, **held)
    if ended.returncode == 0:
        _add(lock, after)
        return ""
    if ended.returncode > 0:  # it failed by itself
        _add(lock, before)
    said = [line.strip() for line in ended.stdout.decode(errors="replace").splitlines() if line.strip()]
    return said[-1].removeprefix("ERROR: ").rstrip(".") if said else f"exit code {ended.returncode}"


def _sound(stamp: str) -> list[str]:
    """Return the lines that hold: those after the last CHANGING."""
    return stamp.rpartition(f"{CHANGING}\n")[2].splitlines()


def _lines(lock: IO[str]) -> list[str]:
    lock.seek(0)
    return _sound(lock.read())


def _add(lock: IO[str], lines: list[str]) -> None:
    lock.write("".join(f"{line}\n" for line in lines))
    lock.flush()


def _digest(group: str) -> str:
    """Return a digest of all that a group's installation depends on."""
    files = [ROOT / "pyproject.toml", ROOT / "requirements" / f"{group}.txt"]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
