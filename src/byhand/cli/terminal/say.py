"""Words to standard error that never end a run."""

import logging
import sys
from contextlib import suppress


def say(line: str) -> None:
    """Print to standard error; if nobody listens any more (a closed pipe, a full disk), go on in silence."""
    with suppress(OSError, RuntimeError):  # RuntimeError: a signal came while another line was being written
        print(line, file=sys.stderr, flush=True)


class _ToStandardError(logging.Handler):
    """Says what the library logs: a line each, with `warning: ` before those that are one."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"{'warning: ' if record.levelno >= logging.WARNING else ''}{record.getMessage()}")


def say_what_is_logged() -> None:
    """Show the library's own words about long work and what it passed over, once."""
    logger = logging.getLogger("byhand")
    if not any(isinstance(handler, _ToStandardError) for handler in logger.handlers):
        logger.addHandler(_ToStandardError())
        logger.setLevel(logging.INFO)
