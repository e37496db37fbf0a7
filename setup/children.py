"""Child processes of `dev.py`, and how it handles a signal while one runs.

An installer runs in a new session: Ctrl-C reaches this process alone, which ends the installer and prints one line.
A tool shares the terminal: Ctrl-C reaches it directly. The program that the user asked for replaces this process.
All that is written survives a kill at any moment, so the handler exits at once: no traceback, no cleanup.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
POSIX = os.name == "posix"
_serving = False  # a tool runs, or is about to
_child: subprocess.Popen[str] | None = None
_received: list[int] = []  # signals since `call` began


def handle_signals() -> None:
    """Exit on a signal with one line and 128 + its number; one that the parent ignores (`nohup`) stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _signalled)


def _signalled(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    if _serving:
        _forward(number)
        return
    if _child is not None and POSIX:
        os.killpg(_child.pid, signal.SIGKILL)  # its whole session, so that its children end too
    elif _child is not None:
        _child.kill()
    os.write(2, b"\ninterrupted; run the same command again\n")
    os._exit(128 + number)


def _forward(number: int) -> None:
    """Send SIGTERM on to the child. The terminal sends the other two to both."""
    if number == signal.SIGTERM and _child is not None:
        _child.send_signal(number)


def replace_by(command: list[str | Path], environment: Mapping[str, str]) -> int:
    """Replace this process by the command, so that a signal reaches it directly, and once."""
    everything = {**os.environ, **environment}
    if POSIX:
        sys.stdout.flush()
        os.execve(command[0], list(map(str, command)), everything)
    return subprocess.run(command, env=everything, check=False).returncode


def call(command: list[str | Path], *, folder: Path | None = None, quiet: bool = False) -> int:
    """Run a tool that shares the terminal; return its exit code as a shell gives it."""
    global _serving, _child
    _serving = True
    _received.clear()
    try:
        _child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL if quiet else None, text=True)
        for number in _received:  # while it was being started
            _forward(number)
        code = _child.wait()
    finally:
        _serving, _child = False, None
    return code if code >= 0 else 128 - code


def call_quietly(command: list[str | Path], *, folder: Path, keep_open: Iterable[int] = ()) -> tuple[int, str]:
    """Run an installer; return its exit code and its output. It inherits the files of `keep_open`."""
    global _child
    apart = {"start_new_session": True, "pass_fds": tuple(keep_open)} if POSIX else {"creationflags": 0x200}
    _child = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        **apart,
    )
    said, _ = _child.communicate()
    code, _child = _child.returncode, None
    return code, said
