"""When the command began, for one that promised to end in time."""

import time

_begun = [time.monotonic()]


def start() -> None:
    """Count from now on: a command begins."""
    _begun[0] = time.monotonic()


def elapsed() -> float:
    """Return the seconds since the command began."""
    return time.monotonic() - _begun[0]
