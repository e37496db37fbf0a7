"""Prints every line that a command writes for people; no control character of an untrusted name reaches a terminal.

`say` writes messages to standard error, `show` and `show_json` results to standard output. Only the content of a
file, such as the bytes of `byhand tokenizer decode`, bypasses them.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from byhand.cli.terminal.shown import escaped, on_terminal, one_line

_program: ContextVar[bool | None] = ContextVar("program", default=None)


@contextmanager
def in_a_program(aloud: bool) -> Iterator[None]:
    """In the `with` block all output goes to standard output, where a notebook shows it, or nowhere."""
    before, logger = _program.set(aloud), logging.getLogger("byhand")
    handlers, level = logger.handlers[:], logger.level
    if aloud:
        say_what_is_logged()
    try:
        yield
    finally:
        _program.reset(before)
        logger.handlers[:] = handlers
        logger.setLevel(level)


def is_silent() -> bool:
    """Return whether output is off."""
    return _program.get() is False


def say(*lines: str) -> None:
    """Print lines to standard error; ignore a closed pipe or a full disk."""
    if is_silent():
        return
    with suppress(OSError, RuntimeError):  # RuntimeError: a signal came while another line was being written
        print(*map(escaped, lines), sep="\n", file=sys.stdout if _program.get() else sys.stderr, flush=True)


def show(*lines: object, end: str = "\n", flush: bool = False) -> None:
    """Print to standard output; a line may contain line ends and tabs."""
    if is_silent():
        return
    print(*(on_terminal(str(line)) for line in lines), sep="\n", end=end, flush=flush)


def show_names(rows: Mapping[str, str]) -> None:
    """Print names, each with its text wrapped beside it."""
    import textwrap  # for pages of help only
    from shutil import get_terminal_size

    first = max(map(len, rows)) + 4
    width = max(get_terminal_size().columns - 2, first + 20)  # as argparse leaves two
    for name, words in rows.items():
        show(textwrap.fill(words, width, initial_indent=f"  {name:<{first - 2}}", subsequent_indent=" " * first))


def show_json(value: Any, indent: int | None = None) -> None:
    """Print as JSON with Chinese unescaped; control characters that JSON would allow are escaped."""
    import json  # `byhand --help` needs none

    lines = json.dumps(value, ensure_ascii=False, indent=indent).split("\n")
    print(*(escaped(line, lambda c: json.dumps(c)[1:-1]) for line in lines), sep="\n")


class _ToStandardError(logging.Handler):
    """Prints each record of the library's log as a line; warnings begin with `warning: `."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"{'warning: ' if record.levelno >= logging.WARNING else ''}{one_line(record.getMessage())}")


def say_what_is_logged() -> None:
    """Print the library's log on standard error: progress of long work, skipped files."""
    logger = logging.getLogger("byhand")
    if not any(isinstance(handler, _ToStandardError) for handler in logger.handlers):
        logger.addHandler(_ToStandardError())
        logger.setLevel(logging.INFO)
