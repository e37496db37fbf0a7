"""Ending a process: without Python's cleanup if a library would crash in it or wait for other processes."""

import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

from byhand.cli.terminal.shown import escaped

DONE, REFUSED, DEFECT, OTHERS_GONE = 0, 2, 70, 75  # 75: try again, as sysexits.h says
SHOW_CURSOR = b"\x1b[?25h"
_causes: list[str] = []
_ending = threading.Event()


def must_be_at_once(why: str) -> None:
    """Make this process end without Python's cleanup."""
    _causes.append(why)


def end(code: int) -> int:
    """Return the exit code; if the process must end at once, flush its output and exit with it."""
    if not _causes:
        return code
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def begin_to_end() -> None:
    """Note that another thread is ending the process."""
    _ending.set()


def wait_if_ending() -> None:
    """Block if the process is ending: it causes all errors from then on, and they must not be reported."""
    if _ending.is_set():
        threading.Event().wait()


def end_now(code: int, *lines: str) -> NoReturn:
    """End the process at once, from any thread, with lines on standard error."""
    with suppress(OSError):
        said = "".join(f"{escaped(line)}\n" for line in lines)
        os.write(2, (SHOW_CURSOR if sys.stderr.isatty() else b"") + said.encode())
    os._exit(code)
