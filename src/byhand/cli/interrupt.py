"""Ctrl-C that loses nothing: the first asks to stop after the step, the second stops now."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

from byhand.cli.say import say

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class StopRequest:
    """In the `with` block SIGINT, SIGTERM and SIGHUP set `.signal` and say so; the second raises KeyboardInterrupt.

    A signal that the parent ignores (`nohup`) stays ignored.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def exit_code(self) -> int:
        """What the shell expects of a process that a signal ended: 128 + its number."""
        return 128 + (self.signal or 0)

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        say("\nstopping after this step, then saving; press Ctrl-C again to stop now")
