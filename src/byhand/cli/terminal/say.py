"""Messages on standard error that never end a run."""

import logging
import sys
from contextlib import suppress


def say(line: str) -> None:
    """Print to standard error; ignore a closed pipe or a full disk."""
    with suppress(OSError, RuntimeError):  # RuntimeError: a signal came while another line was being written
        print(line, file=sys.stderr, flush=True)


class _ToStandardError(logging.Handler):
    """Prints each record of the library's log on a line; warnings begin with `warning: `."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"{'warning: ' if record.levelno >= logging.WARNING else ''}{record.getMessage()}")


def say_what_is_logged() -> None:
    """Print the library's log on standard error: long work, skipped files."""
    logger = logging.getLogger("byhand")
    if not any(isinstance(handler, _ToStandardError) for handler in logger.handlers):
        logger.addHandler(_ToStandardError())
        logger.setLevel(logging.INFO)
