"""The last line of defence: every exception of a command becomes one line and an exit code, never a traceback.

A `ByhandError` says what the user can do, an OSError what the system refused. Anything else is a defect of byhand:
the line says so and where, and asks for a report.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress

from byhand.cli.terminal.ending import DEFECT, DONE, REFUSED, wait_if_ending
from byhand.cli.terminal.say import say
from byhand.cli.terminal.shown import one_line, shown
from byhand.errors import ByhandError, reason

WRITING = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EBADF, getattr(errno, "EDQUOT", errno.ENOSPC)}
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def guarded(command: Callable[[], int], debug: bool = False, prog: str = "byhand") -> int:
    """Return the command's exit code, or that of its exception, which is reported in one line on standard error.

    With `debug` the traceback is shown before that line.
    """
    try:
        try:
            code = command()
            sys.stdout.flush()
        except SystemExit as stop:  # --help
            code = _code(stop)
            sys.stdout.flush()
    except Exception as error:
        if _is_of_debugger(error):
            raise
        code = _failed(error, debug, prog)
    finally:
        _empty_streams()
    return code


def _is_of_debugger(error: Exception) -> bool:
    """Return whether Python's debugger raised it to leave the program at its prompt's `quit`."""
    debugger = sys.modules.get("bdb")
    return debugger is not None and isinstance(error, debugger.BdbQuit)


def open_streams() -> None:
    """Read and write UTF-8 in every locale, so that Chinese and sampled bytes never end a command.

    Each line is written at once, so that a signal loses none. A stream that was closed before the start reads as
    empty and discards output.
    """
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 (open for as long as the process)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(io.UnsupportedOperation):  # a debugger has read from it already
                stream.reconfigure(encoding="utf-8", errors="replace", line_buffering=stream is not sys.stdin)


def _failed(error: BaseException, debug: bool, prog: str) -> int:
    """Report a command's exception, and return its exit code."""
    wait_if_ending()
    if debug:
        import traceback

        say(*"".join(traceback.format_exception(error)).rstrip().split("\n"))
    match error:
        case ByhandError():
            say(f"error: {one_line(error)}")
        case BrokenPipeError():  # `byhand ... | head` closed the pipe: nothing is wrong, and nothing can be printed
            return DONE
        case OSError():
            say(f"error: {_refused(error)}")
        case MemoryError():
            say(f"error: not enough memory: {one_line(error) or 'for these sizes'}. Use smaller sizes or batches.")
        case _:
            say(f"error: {_defect(error, prog)}")
            return DEFECT
    return REFUSED


def _refused(error: OSError) -> str:
    """Return a line for an OSError; a failed write to an open file, such as standard output, names no file."""
    why = one_line(reason(error))
    if error.filename is not None:
        name = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
        return f"cannot use {shown(name, 200)}: {why}. Check the path and its permissions."
    if error.errno in WRITING:
        return f"cannot write the output: {why}."
    return f"the system refused: {why}."


def _defect(error: BaseException, prog: str) -> str:
    said = one_line(error).rstrip(".")
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return (
        f"this is a defect of byhand: {what}{_place(error)}. "
        f"Please report it, with the command and what `{prog} --debug` before its other arguments shows."
    )


def _place(error: BaseException) -> str:
    """Return ` at byhand/cli/main.py:12` for byhand's innermost frame, or "" without one."""
    from traceback import walk_tb

    place = ""
    for frame, line in walk_tb(error.__traceback__):
        path = os.path.abspath(frame.f_code.co_filename)
        if path.startswith(PACKAGE + os.sep):
            place = f" at {os.path.relpath(path, os.path.dirname(PACKAGE)).replace(os.sep, '/')}:{line}"
    return place


def _code(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    say(f"error: {one_line(stop.code)}")
    return REFUSED


def _empty_streams() -> None:
    """Redirect a stream that cannot be flushed to the null device, so that Python's exit stays quiet."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
