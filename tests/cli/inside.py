"""The command line in the process of the test: as `cli.process.byhand`, without the second that a start takes.

What a command leaves in its process ends with it here too: streams, environment, folder, handlers of signals and of
the log, and how the process is to end.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from byhand import TinyGPT, TrainConfig
from byhand.cli.main import main
from byhand.cli.terminal import ending
from byhand.cli.terminal.interrupts import SIGNALS
from byhand.runs.checkpoint import save
from byhand.runs.contents import Checkpoint
from cli.process import environment


def byhand(
    *arguments: object, cwd: Path | None = None, stdin: bytes = b"", **extra: str
) -> subprocess.CompletedProcess[bytes]:
    """Run `byhand` to its end, in a folder and with variables of the environment that the test adds."""
    return _run(main, arguments, cwd, stdin, extra)


def train_gpt(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run `train_gpt` to its end."""
    return _run(import_module("byhand.cli.seed.train_gpt").main, arguments, cwd, b"", {})


def _run(
    program: Callable[[], int],
    arguments: tuple[object, ...],
    cwd: Path | None,
    stdin: bytes,
    extra: dict[str, str],
) -> subprocess.CompletedProcess[bytes]:
    assert not any(name.startswith("PYTHON") for name in extra), "Python reads these when it starts"
    words = [str(argument) for argument in arguments]
    streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") for content in (stdin, b"", b"")]
    with isolated(), contextlib.chdir(cwd or Path()):
        os.environ.update(environment(**extra))
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.argv = ["program", *words]
        code = program()
        for stream in streams[1:]:
            stream.flush()
    said = [stream.buffer.getvalue() for stream in streams[1:]]  # pyright: ignore[reportAttributeAccessIssue]
    return subprocess.CompletedProcess(words, code, *said)


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """Undo at the end of the `with` block what a command does to its process."""
    log = logging.getLogger("byhand")
    variables, handlers, level = dict(os.environ), log.handlers[:], log.level
    signals = {number: signal.getsignal(number) for number in SIGNALS}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("argv", "stdin", "stdout", "stderr"):
            patch.setattr(sys, name, getattr(sys, name))
        patch.setattr(ending, "_causes", [])
        log.handlers[:] = []
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(variables)
            log.handlers[:] = handlers
            log.setLevel(level)
            for number, handler in signals.items():
                if signal.getsignal(number) is not handler:
                    signal.signal(number, handler)


def write_run(folder: Path, config: TrainConfig, text: dict[str, Any] | None = None) -> Path:
    """Save a run that stands at step 4, with initial weights and moments of zero; return its folder."""
    parameters = {n: p.data for n, p in TinyGPT(config.model, seed=3).parameters().items()}
    moments = {n: 0 * a for n, a in parameters.items()}
    save(folder, Checkpoint(config, parameters, {"m": moments, "v": moments}, {"step": 4, "text": text or {}}))
    return folder
