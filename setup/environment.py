"""The private environment .venv of a checkout, made by venv and pip: once, and again when unfinished, moved, or of
another Python.

Whoever changes .venv holds .venv.lock, and keeps the file `byhand-changing` in .venv until it is done. Who finds that
file, though nobody holds the lock, begins with an empty .venv: so a signal may end this program at any moment. Stamps
say what .venv holds: `byhand-environment.stamp` its place and Python, `byhand-GROUP.stamp` requirements/GROUP.txt.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LOCK = ROOT / ".venv.lock"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
CHANGING, STAMP, LOG = (VENV / f"byhand-{name}" for name in ("changing", "environment.stamp", "install.log"))
PLACE = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}\n{VENV}\n"
GROUPS = {  # the contents of requirements/GROUP.txt; each group needs the ones before it
    "run": ["--extra", "plot"],
    "fast": ["--extra", "fast"],
    "xla": ["--extra", "xla"],
    "test": ["--group", "test"],
    "lint": ["--group", "lint"],
    "docs": ["--group", "docs"],
}
OPTIONAL = ("fast", "xla")  # left out, with a line, on platforms without wheels
NETWORK = re.compile(r"retrying|connect|dns|fetch|timed out|network", re.IGNORECASE)


def fail(line: str) -> NoReturn:
    """Say what is wrong and end with exit code 2."""
    print(f"error: {line}", file=sys.stderr)
    sys.exit(2)


def prepare(group: str) -> None:
    """Install a group's packages into the environment, unless they are there."""
    names = [*GROUPS][: [*GROUPS].index(group) + 1]
    if not _unfit() and not any(map(_stale, names)):
        return
    try:
        with _locked() as lock:
            _make_sound(lock)
            for name in filter(_stale, names):
                _install_group(name, lock)
    except OSError as error:
        fail(f"cannot prepare {VENV}: {error.filename or ''}: {error.strerror}. Make this folder writable.")


def install(package: str, must: bool = True) -> None:
    """Install a package that is in no group; one that is not a `must` may have no file for this machine."""
    print(f"installing {package}", file=sys.stderr, flush=True)
    with _locked() as lock:
        said = _pip(lock, package)
    if said and must:
        _fail_to_install(package, said)
    if said:
        print(f"{package} cannot be installed here: tests that need it are skipped", file=sys.stderr, flush=True)


@contextmanager
def _locked() -> Iterator[IO[str]]:
    """Hold .venv.lock; wait, with a line, while another process does."""
    with LOCK.open("a+", encoding="utf-8") as lock:
        if not _acquire(lock):
            print("another dev.py is installing; waiting for it", file=sys.stderr, flush=True)
            while not _acquire(lock):
                time.sleep(0.1)
        yield lock


def _acquire(lock: IO[str]) -> bool:
    """Try to lock a file; on a file system without locks, go on without."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)  # pyright: ignore
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True


def _unfit() -> str:
    """Return why .venv cannot be used, or ""."""
    if not os.path.lexists(VENV):
        return "it is not there"
    if CHANGING.exists():
        return "an installation was interrupted"
    if not PYTHON.exists():
        return "it has no Python"
    return "" if _read(STAMP) == PLACE else "it was made for another Python or in another place"


def _make_sound(lock: IO[str]) -> None:
    """Make .venv, or make it again, unless it is sound. What others made there is left alone."""
    reason = _unfit()
    if not reason:
        return
    if os.path.lexists(VENV):
        found = list(VENV.iterdir()) if VENV.is_dir() and not VENV.is_symlink() else [VENV]
        if found and not any(path.name.startswith("byhand-") for path in found):
            fail(f"{VENV} is not from dev.py, and {reason}. Move it away and run the same command again.")
        print(f"making {VENV.name} anew: {reason}", file=sys.stderr, flush=True)
        CHANGING.touch()
        for path in found:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path != CHANGING:
                path.unlink()
    VENV.mkdir(exist_ok=True)
    CHANGING.touch()
    base = getattr(sys, "_base_executable", sys.executable)  # .venv's own Python may run this
    code, said = _run(lock, base, "-m", "venv", VENV)
    if code:
        fail(f"cannot make {VENV.name}: {_last_line(said)}. Install python3-venv and run the same command again.")
    STAMP.write_text(PLACE, encoding="utf-8")
    CHANGING.unlink()


def _install_group(name: str, lock: IO[str]) -> None:
    print(f"installing what `dev.py {name}` needs into {VENV.name}, once", file=sys.stderr, flush=True)
    wheels = ["--only-binary", ":all:"] if name in OPTIONAL else []
    said = _pip(lock, *wheels, "--require-hashes", "-r", ROOT / "requirements" / f"{name}.txt")
    if said and name in OPTIONAL:
        print(f"going on without {name}: {_last_line(said)}", file=sys.stderr)
        if NETWORK.search(said):
            return  # the next command tries again
    elif not said and name == "run":
        said = _pip(lock, "--no-deps", "-e", ROOT)
    if said and name not in OPTIONAL:
        _fail_to_install(f"what `dev.py {name}` needs", said)
    (VENV / f"byhand-{name}.stamp").write_text(_fingerprint(name), encoding="utf-8")


def _pip(lock: IO[str], *arguments: str | Path) -> str:
    """Install into .venv; return "", or pip's output if it failed. pip changes nothing before it has every file."""
    before = _packages()
    CHANGING.touch()
    code, said = _run(lock, PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments)
    LOG.write_text(said, encoding="utf-8")
    if code == 0 or _packages() == before:  # else it stopped half-way, and the next command makes .venv again
        CHANGING.unlink()
    return (said or f"exit code {code}") if code else ""


def _run(lock: IO[str], *command: str | Path) -> tuple[int, str]:
    """Run an installer, which holds the lock too, should this process be killed; return its exit code and output."""
    held = {"pass_fds": (lock.fileno(),)} if os.name == "posix" else {}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=ROOT, check=False, **pipes, **held)
    return done.returncode, done.stdout.decode(errors="replace")


def _fail_to_install(what: str, said: str) -> NoReturn:
    line = _last_line(said)
    fail(f"cannot install {what}: {line}. Check the network and run the same command again; more is in {LOG}.")


def _last_line(said: str) -> str:
    """Return the last line of an installer's output."""
    lines = [line.strip().removeprefix("ERROR: ").rstrip(".") for line in said.splitlines()]
    return next((line for line in reversed(lines) if line), "no reason was given")


def _packages() -> set[str]:
    return {str(path) for pattern in ("lib/*/site-packages/*", "Lib/site-packages/*") for path in VENV.glob(pattern)}


def _stale(group: str) -> bool:
    """Return whether a group must be installed."""
    return _read(VENV / f"byhand-{group}.stamp") != _fingerprint(group)


def _fingerprint(group: str) -> str:
    """Return a digest of all that a group's installation depends on."""
    digest = hashlib.sha256(sys.version.encode())
    for name in ("pyproject.toml", f"requirements/{group}.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _read(path: Path) -> str:
    """Return a file's text, or "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
