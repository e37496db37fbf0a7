"""The time since the command began, for `train --minutes`."""

import time

_begun = [time.monotonic()]


def start() -> None:
    """Start the clock."""
    _begun[0] = time.monotonic()


def elapsed() -> float:
    """Return the seconds since the command began."""
    return time.monotonic() - _begun[0]
