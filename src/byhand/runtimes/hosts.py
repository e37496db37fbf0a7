"""Several processes that train one model together, each on a host: what they say to each other.

A process that is alone is a group of one. What the processes do together they do in the same order: each call of
`gather`, `together` and `first` belongs to the same call on every other one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from byhand.errors import ByhandError, ConfigError

PATIENCE = 300.0  # seconds for a step, by default

Made = TypeVar("Made")


class ProcessGroup:
    """The processes that train together; by itself this one alone.

    index  this one's number, from 0; the first one writes the log
    count  how many they are
    """

    index = 0
    count = 1

    def gather(self, value: str) -> list[str]:
        """Return what each process said, by its number."""
        return [value]

    def together(self, make: Callable[[], Made]) -> Made:
        """Return what `make` makes. If it fails on any host, all raise: that one its error, the others a line."""
        if self.count == 1:
            return make()
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
        """Return what `make` makes on the first host, which alone calls it."""
        return self.gather(self.together(lambda: make() if self.index == 0 else ""))[0]

    def agree(self, values: Mapping[str, str]) -> None:
        """Raise ConfigError, which names the first one that differs, unless all hosts have the same values."""
        said = [json.loads(each) for each in self.gather(json.dumps(values))]
        for index, other in enumerate(said):
            for what, value in values.items():
                if other.get(what) != value:
                    low, high = sorted((index, self.index))
                    both = f"{said[low].get(what)} and {said[high].get(what)}"
                    raise ConfigError(f"hosts {low} and {high} have different {what}: {both}. Give all the same.")

    def leave(self, why: str = "") -> None:
        """End together with the others, or, for a reason, without them: then they end too."""

    def await_verdict(self) -> None:
        """Wait until it would be known which host is gone; this process ends if one is."""

    def mark(self, step: int, inside: bool) -> None:
        """Say that this process goes on: it begins a step (inside), or does something else at this step."""

    def stopping(self, step: int, signal: int | None) -> int | None:
        """Return the signal that stops all hosts after this step, or None.

        signal  what asks this process to stop; the others learn of it by the end of their next step
        """
        return signal


def _line(error: Exception) -> str:
    """Return an error's message on one line, which another host can read: it may name a file by any bytes."""
    written = str(error).encode("utf-8", "backslashreplace").decode()
    return " ".join(written.split()) or type(error).__name__


ALONE = ProcessGroup()
