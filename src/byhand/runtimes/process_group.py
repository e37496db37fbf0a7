"""Processes that train one model together, each on a host, and how they communicate.

A lone process is a group of one. `gather`, `together` and `first` are collectives: all processes call them in the
same order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from byhand.errors import ByhandError, ConfigError

PATIENCE = 300.0  # seconds for a step, by default

Made = TypeVar("Made")


class ProcessGroup:
    """The processes that train together; this base class is a lone process.

    index  this process's number, from 0; the first one writes the log
    count  number of processes
    """

    index = 0
    count = 1

    def gather(self, value: str) -> list[str]:
        """All-gather a string: return the value of each process, by its number."""
        return [value]

    def together(self, make: Callable[[], Made]) -> Made:
        """Return the result of `make`. If it fails on a host, that host raises its error, all others a summary."""
        try:
            made, error = make(), None
        except Exception as failed:
            made, error = None, failed
        said = self.gather("" if error is None else _line(error))
        if error is not None:
            raise error
        for index, line in enumerate(said):
            if line:
                raise ByhandError(f"host {index}: {line}")
        return made  # pyright: ignore[reportReturnType]  (no error was raised)

    def first(self, make: Callable[[], str]) -> str:
        """Call `make` on the first host, and broadcast its result."""
        return self.gather(self.together(lambda: make() if self.index == 0 else ""))[0]

    def agree(self, values: Mapping[str, str]) -> None:
        """Raise ConfigError with the first difference unless all hosts have the same values."""
        said = [json.loads(each) for each in self.gather(json.dumps(values))]
        for index, other in enumerate(said):
            for what, value in values.items():
                if other.get(what) != value:
                    low, high = sorted((index, self.index))
                    both = f"{said[low].get(what)} and {said[high].get(what)}"
                    raise ConfigError(f"hosts {low} and {high} have different {what}: {both}. Give all the same.")

    def leave(self, why: str = "") -> None:
        """Leave together with all others; with a reason, leave at once and end the others."""

    def await_verdict(self) -> None:
        """Wait until the watch notices a lost host and ends this process."""

    def mark(self, step: int, inside: bool) -> None:
        """Report progress: this process begins a step (inside), or does other work at this step."""

    def stopping(self, step: int, signal: int | None) -> int | None:
        """Return the signal that stops all hosts after this step, or None.

        signal  the signal that this process received, or None; the others learn of it by the end of their next step
        """
        return signal


def _line(error: Exception) -> str:
    """Return an error's message as one line of valid UTF-8; file names in it may be any bytes."""
    written = str(error).encode("utf-8", "backslashreplace").decode()
    return " ".join(written.split()) or type(error).__name__
