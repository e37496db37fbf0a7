"""The private environment .venv of a checkout: made once, and again when damaged, moved, or of another Python.

The process that changes .venv holds .venv.lock, which says `changing` until it is done. A process that finds that
word without a holder knows that the change was interrupted, and begins with an empty .venv. Stamps in .venv record
what it holds: `byhand-environment.stamp` its place and Python, `byhand-GROUP.stamp` requirements/GROUP.txt.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn

from children import call_quietly

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LOCK = ROOT / ".venv.lock"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "byhand-environment.stamp"
LOG = VENV / "byhand-install.log"
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
PARTS = {"bin", "include", "lib", "lib64", "Scripts", "Include", "Lib", "pyvenv.cfg", ".gitignore"}  # of a bare one
GROUPS = {  # the contents of requirements/GROUP.txt; each group needs the ones before it
    "run": ["--extra", "plot"],
    "fast": ["--extra", "fast"],
    "xla": ["--extra", "xla"],
    "test": ["--group", "test"],
    "lint": ["--group", "lint"],
    "docs": ["--group", "docs"],
}
OPTIONAL = ("fast", "xla")  # left out, with a line, on platforms without wheels
CHANGING = "changing"
NETWORK = re.compile(r"retrying|connect|dns|fetch|timed out|network", re.IGNORECASE)


def fail(line: str) -> NoReturn:
    """Say what is wrong and end with exit code 2."""
    print(f"error: {line}", file=sys.stderr)
    sys.exit(2)


def prepare(group: str) -> None:
    """Install a group's packages into the environment, unless they are there."""
    names = [*GROUPS][: [*GROUPS].index(group) + 1]
    if not _interrupted() and not _unfit() and not any(map(_stale, names)):
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
        if said := _install(lock, package):
            if must:
                fail_to_install(package, said)
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

            lock.seek(1 << 20)  # a byte that is never read, since no other process could
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)  # pyright: ignore
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True


def _say_changing(lock: IO[str], changing: bool) -> None:
    lock.seek(0)
    lock.truncate()
    lock.write(CHANGING if changing else "")
    lock.flush()
    os.fsync(lock.fileno())


def _interrupted() -> bool:
    """Return whether a change of .venv was not finished, or is going on."""
    return CHANGING in _read(LOCK)


def _unfit() -> str:
    """Return why .venv cannot be used, or ""."""
    if not os.path.lexists(VENV):
        return "it is not there"
    if not PYTHON.exists():
        return "it has no Python"
    if STAMP.exists():
        return "" if _read(STAMP) == _stamp() else "it was made for another Python or in another place"
    # Without that stamp an older dev.py, or the user, made it.
    if not re.search(rf"^version(_info)? *= *{VERSION}\b", _read(VENV / "pyvenv.cfg"), re.MULTILINE):
        return "it was made for another Python"
    return "" if str(VENV) in _read(BIN / "activate") else "it was made in another place, or not finished"


def _replaceable() -> bool:
    """Return whether an unfit .venv may be deleted: this file made it, or it is unfinished."""
    if VENV.is_symlink() or not VENV.is_dir():
        return False
    unfinished = {p.name for p in VENV.iterdir()} <= PARTS and not (BIN / "activate").exists()
    return _interrupted() or any(VENV.glob("byhand-*.stamp")) or unfinished


def _make_sound(lock: IO[str]) -> None:
    """Make .venv, or make it again, unless it is sound."""
    reason = "an installation was interrupted" if _interrupted() else _unfit()
    if not reason:
        return
    if os.path.lexists(VENV):
        if not _replaceable():
            fail(f"{VENV} is not from dev.py, and {reason}. Move it away and run the same command again.")
        _say_changing(lock, True)
        print(f"making {VENV.name} anew: {reason}", file=sys.stderr, flush=True)
        shutil.rmtree(VENV)
    _say_changing(lock, True)
    uv, base = shutil.which("uv"), getattr(sys, "_base_executable", sys.executable)  # .venv's own Python may run this
    command = [uv, "venv", "-q", "--seed", "--python", base] if uv else [base, "-m", "venv"]
    code, said = call_quietly([*command, VENV], folder=ROOT, keep_open=[lock.fileno()])
    if code:
        remedy = "Check the network" if uv else "Install python3-venv, or uv,"
        fail(f"cannot make {VENV.name}: {_last_line(said)}. {remedy} and run the same command again.")
    STAMP.write_text(_stamp(), encoding="utf-8")
    _say_changing(lock, False)


def _install_group(name: str, lock: IO[str]) -> None:
    print(f"installing what `dev.py {name}` needs into {VENV.name}, once", file=sys.stderr, flush=True)
    wheels = ["--only-binary", ":all:"] if name in OPTIONAL else []
    said = _install(lock, *wheels, "--require-hashes", "-r", ROOT / "requirements" / f"{name}.txt")
    if said and name in OPTIONAL:
        print(f"going on without {name}: {_last_line(said)}", file=sys.stderr)
        if NETWORK.search(said):
            return  # the next command tries again
    elif not said and name == "run":
        said = _install(lock, "--no-deps", "-e", ROOT)
    if said and name not in OPTIONAL:
        fail_to_install(f"what `dev.py {name}` needs", said)
    (VENV / f"byhand-{name}.stamp").write_text(_fingerprint(name), encoding="utf-8")


def _install(lock: IO[str], *arguments: str | Path) -> str:
    """Install into .venv; return "", or the installer's output if it failed."""
    uv, before = shutil.which("uv"), _packages()
    installer = [uv, "pip", "install", "--python", PYTHON] if uv else [PYTHON, "-m", "pip", "install"]
    quiet = ["-q"] if uv else ["-q", "--disable-pip-version-check"]
    _say_changing(lock, True)
    code, said = call_quietly([*installer, *quiet, *arguments], folder=ROOT, keep_open=[lock.fileno()])
    LOG.write_text(said, encoding="utf-8")
    if code == 0 or _packages() == before:  # else it stopped half-way, and the next command makes .venv again
        _say_changing(lock, False)
    return (said or f"exit code {code}") if code else ""


def fail_to_install(what: str, said: str) -> NoReturn:
    """End with the last line of an installer's output."""
    line = _last_line(said)
    fail(f"cannot install {what}: {line}. Check the network and run the same command again; more is in {LOG}.")


def _last_line(said: str) -> str:
    """Return the last line of an installer's output, without its ornaments."""
    lines = [line.strip(" \n×├─╰▶│").removeprefix("ERROR: ").rstrip(".") for line in said.splitlines()]
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


def _stamp() -> str:
    return f"{sys.implementation.name} {VERSION}\n{VENV}\n"


def _read(path: Path) -> str:
    """Return a file's text, or "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
