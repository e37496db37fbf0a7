"""Words to standard error that never end a run."""

import sys
from contextlib import suppress


def say(line: str) -> None:
    """Print to standard error; if nobody listens any more (a closed pipe, a full disk), go on in silence."""
    with suppress(OSError, RuntimeError):  # RuntimeError: a signal came while another line was being written
        print(line, file=sys.stderr, flush=True)
