"""SIGINT, SIGTERM and SIGHUP end the process at once, at any moment of any command, and lose nothing.

A file gets its name when it is whole and a checkpoint is whole or absent, so no exception has to unwind the stack:
none is lost in an import, none comes in the middle of a statement. A thread receives the signals, so neither compiled
code nor a read that hangs delays one. A loop that ends its step first says so by a `StopRequest`; then the second
signal ends the process, unless it is the first one again at the same moment, as `timeout` sends it to its child and
to their process group: the third one does. A signal that the parent ignores (`nohup`) stays ignored.
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
CLOSING = 3.0  # seconds for what is done before the process ends
MOMENT = 0.2  # seconds: nobody presses Ctrl-C again so soon
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
    except RuntimeError:  # the system refuses a thread: it ends the process itself
        signal.set_wakeup_fd(-1)
        release()


def release() -> None:
    """Leave the signals to the system: nothing is left to do but Python's own cleaning up."""
    while _received:
        signal.signal(_received.pop(), signal.SIG_DFL)


@contextmanager
def at_the_end(close: Callable[[], str | None]) -> Iterator[None]:
    """In the `with` block, let `close` run in another thread before a signal ends the process.

    close  may return words to follow "interrupted"; after a few seconds it is not waited for
    """
    _last.append(close)
    try:
        yield
    finally:
        _last.remove(close)


class StopRequest:
    """In the `with` block the first signal becomes `.signal` and is announced; the next one ends the process.

    Two of the same number within a `MOMENT` are one.

    numbers  the signals; others end the process at once
    words    that announce it; "" says nothing
    """

    numbers: Collection[int] = SIGNALS
    words = "stopping after this step, then saving; press Ctrl-C again to stop now"

    def __init__(self) -> None:
        self.signal: int | None = None
        self._alone = 0.0  # until when the same signal is no other one

    def take(self, number: int) -> bool:
        """Take a signal; return False if it asks to end at once."""
        if self.signal is None:
            self.signal, self._alone = number, inf
            if self.words:
                say("", self.words)
            self._alone = min(self._alone, monotonic() + MOMENT)  # to say it may take longer
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
        above = [""]  # it is in the middle of a line of progress
        if request.take(number):
            return
    begin_to_end()
    closing = threading.Thread(target=lambda: said.extend(_close()), daemon=True)
    said: list[str] = []
    with suppress(RuntimeError):  # Python is ending, and starts no thread any more
        closing.start()
        closing.join(CLOSING)
    end_now(128 + number, *above, " ".join(["interrupted", *said]))


def _close() -> Iterator[str]:
    """Do what is left to do, the innermost first, and yield what is to be said."""
    for close in reversed(_last):
        with suppress(Exception):
            if words := close():
                yield words
    # An import here could wait for one that is under way; a module that is being imported has no `abandon` yet.
    if abandon := getattr(sys.modules.get("byhand.files.writing"), "abandon", None):
        abandon()
