"""SIGINT, SIGTERM and SIGHUP end the process at once, at any moment of any command, and lose nothing.

A file gets its name when it is whole, and a checkpoint is whole or absent, so no exception has to unwind the stack:
none is lost in an import, none comes in the middle of a statement. A thread receives the signals, so neither compiled
code nor a hanging read delays them. A loop that finishes its step first opens a `StopRequest`; then the second signal
ends the process. A repetition within a moment does not count: `timeout` signals its child, then their process group.
A signal that the parent ignores (`nohup`) stays ignored.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from math import inf
from time import monotonic
from typing import Self

from byhand.cli.terminal.ending import begin_to_end, end_now
from byhand.cli.terminal.say import say

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
DEFAULTS = (signal.SIG_DFL, signal.default_int_handler)
CLOSING = 3.0  # seconds for cleanup before the process ends
MOMENT = 0.2  # seconds within which nobody presses Ctrl-C twice
_last: list[Callable[[], str | None]] = []
_requests: list[StopRequest] = []
_received: list[int] = []  # the signals that this process handles


def receive() -> None:
    """Receive the signals from now on, until `release`."""
    received, sent = socket.socketpair()
    sent.setblocking(False)
    signal.set_wakeup_fd(sent.detach(), warn_on_full_buffer=False)
    for number in SIGNALS:
        if signal.getsignal(number) in DEFAULTS:
            signal.signal(number, lambda number, frame: None)  # the thread does the rest
            _received.append(number)

    def listen() -> None:
        while numbers := received.recv(64):
            for number in numbers:
                if number in _received:
                    _act(number)

    try:
        threading.Thread(target=listen, name="byhand-signals", daemon=True).start()
    except RuntimeError:  # no thread to be had: the system's own handlers end the process
        signal.set_wakeup_fd(-1)
        release()


def release() -> None:
    """Restore the system's handlers: only Python's own cleanup is left."""
    while _received:
        signal.signal(_received.pop(), signal.SIG_DFL)


@contextmanager
def at_the_end(close: Callable[[], str | None]) -> Iterator[None]:
    """In the `with` block, run `close` in another thread before a signal ends the process.

    close  may return words to follow "interrupted"; has a few seconds
    """
    _last.append(close)
    try:
        yield
    finally:
        _last.remove(close)


class StopRequest:
    """In the `with` block the first signal becomes `.signal` and is announced; the next one ends the process.

    Two of the same number within `MOMENT` count as one.

    numbers  the signals; others end the process at once
    words    announce the first; "" prints nothing
    """

    numbers: Collection[int] = SIGNALS
    words = "stopping after this step, then saving; press Ctrl-C again to stop now"

    def __init__(self) -> None:
        self.signal: int | None = None
        self._alone = 0.0  # until then the same signal counts as the first

    def take(self, number: int) -> bool:
        """Handle a signal; return False if it asks to end at once."""
        if self.signal is None:
            self.signal, self._alone = number, inf
            if self.words:
                say("", self.words)
            self._alone = min(self._alone, monotonic() + MOMENT)  # printing may take longer
            return True
        again, self._alone = number == self.signal and monotonic() < self._alone, 0.0
        return again

    def __enter__(self) -> Self:
        _requests.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _requests.remove(self)

    @property
    def exit_code(self) -> int:
        """The exit code of a process that a signal ended: 128 + its number."""
        return 128 + (self.signal or 0)


def _act(number: int) -> None:
    above: list[str] = []
    for request in _requests:
        if number not in request.numbers:
            continue
        above = [""]  # the cursor stands in a line of progress
        if request.take(number):
            return
    begin_to_end()
    closing = threading.Thread(target=lambda: said.extend(_close()), daemon=True)
    said: list[str] = []
    with suppress(RuntimeError):  # Python is shutting down and starts no threads
        closing.start()
        closing.join(CLOSING)
    end_now(128 + number, *above, " ".join(["interrupted", *said]))


def _close() -> Iterator[str]:
    """Call what `at_the_end` registered, the innermost first, and yield its words."""
    for close in reversed(_last):
        with suppress(Exception):
            if words := close():
                yield words
    # An import here could wait for one in progress; a module that is being imported has no `abandon` yet.
    if abandon := getattr(sys.modules.get("byhand.files.writing"), "abandon", None):
        abandon()
