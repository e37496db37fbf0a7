"""How a process ends: without Python's cleanup, if a library would crash in it or wait for other processes."""

import os
import sys
from contextlib import suppress
from typing import NoReturn

from byhand.cli.terminal.shown import escaped

DONE, REFUSED, DEFECT, OTHERS_GONE, INTERRUPTED = 0, 2, 70, 75, 130  # 75: try again, as sysexits.h says
SHOW_CURSOR = b"\x1b[?25h"
_causes: list[str] = []


def must_be_at_once(why: str) -> None:
    """Let this process end without Python's cleaning up."""
    _causes.append(why)


def end(code: int) -> int:
    """Return the exit code, or end the process with it, its output written, if it must end at once.

    A compiler that was interrupted may crash while Python cleans up, as XLA does.
    """
    if code != INTERRUPTED and not _causes:
        return code
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def end_now(code: int, line: str) -> NoReturn:
    """End the process at once, from any thread, with a line on standard error."""
    with suppress(OSError):
        os.write(2, (SHOW_CURSOR if sys.stderr.isatty() else b"") + f"\n{escaped(line)}\n".encode())
    os._exit(code)
