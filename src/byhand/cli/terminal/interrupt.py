"""Ctrl-C that loses nothing: the first asks to stop after the step, the second stops now."""

from __future__ import annotations

import signal
import socket
import threading
from typing import Any

from byhand.cli.terminal.ending import end_now
from byhand.cli.terminal.say import say

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class StopRequest:
    """In the `with` block SIGINT, SIGTERM and SIGHUP set `.signal` and say so; the second ends the process at once.

    A thread receives them, so that no step and no compilation delays the second, and no exception comes in the
    middle of a statement. Ending without cleaning up loses nothing: a checkpoint is whole or absent at any moment.
    A signal that the parent ignores (`nohup`) stays ignored.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        self._received, self._send = socket.socketpair()
        self._send.setblocking(False)
        self._thread = threading.Thread(target=self._listen, name="byhand-signals", daemon=True)
        self._thread.start()
        signal.set_wakeup_fd(self._send.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, lambda number, frame: None)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        self._send.close()  # ends the thread
        self._thread.join()
        self._received.close()

    @property
    def exit_code(self) -> int:
        """The exit code of a process that a signal ended: 128 + its number."""
        return 128 + (self.signal or 0)

    def _listen(self) -> None:
        while numbers := self._received.recv(64):
            for number in numbers:
                if number in SIGNALS:
                    self._request(number)

    def _request(self, number: int) -> None:
        if self.signal is not None:
            end_now(128 + number, "interrupted")
        self.signal = number
        say("", "stopping after this step, then saving; press Ctrl-C again to stop now")
