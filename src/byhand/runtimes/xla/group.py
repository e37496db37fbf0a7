"""A process group of several hosts, which communicate through the key-value store of JAX's coordinator."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax

from byhand.errors import ByhandError, ConfigError
from byhand.runtimes.process_group import ProcessGroup
from byhand.runtimes.xla.cluster import NO_JAX, Host
from byhand.runtimes.xla.watch import LOST, OUTSIDE, PREFIX, Watch


class JoinedGroup(ProcessGroup):
    """See `ProcessGroup`.

    service  the coordinator's process, on the first host
    """

    def __init__(self, host: Host, patience: float, ended: Callable[[str], None], service: Any) -> None:
        self.index, self.count = host.index, host.count
        self._client, self._service = _client(), service
        self._patience = patience
        self._numbers = itertools.count()
        self._asked = False
        self._watch = Watch(self._client, host.index, host.count, patience, ended)
        self._watch.start()

    def gather(self, value: str) -> list[str]:
        """Return the value of each process, by its number."""
        number = next(self._numbers)
        self._client.key_value_set(f"{PREFIX}/said/{number}/{self.index}", f"={value}")
        said = [value if i == self.index else self._said(number, i) for i in range(self.count)]
        if number > 1:  # every host has read all values but the latest
            self._client.key_value_delete(f"{PREFIX}/said/{number - 2}/{self.index}")
        return said

    def _said(self, number: int, index: int) -> str:
        """Wait for a process's value. If its host is lost, the watch notices before this times out."""
        limit = int(2000 * OUTSIDE * self._patience)
        try:
            return self._client.blocking_key_value_get(f"{PREFIX}/said/{number}/{index}", limit)[1:]
        except jax.errors.JaxRuntimeError as error:
            raise ByhandError(f"host {index} does not answer: {first_line(error)}.") from None

    def mark(self, step: int, inside: bool) -> None:
        """Report progress to the watch."""
        self._watch.mark(step, inside)

    def stopping(self, step: int, signal: int | None) -> int | None:
        """Return the signal that stops all hosts after this step, or None.

        A host that receives a signal announces it before its next step. No host can finish that step without it, so
        all have read the announcement by then.
        """
        if signal is not None and not self._asked:
            self._asked = True
            self._client.key_value_set(f"{PREFIX}/stop/{self.index}", f"{step + 1} {signal}")
        found = (value.split() for _, value in self._client.key_value_dir_get(f"{PREFIX}/stop/"))
        due, number = min(((int(due), int(number)) for due, number in found), default=(step + 1, 0))
        return number if due <= step else None

    def leave(self, why: str = "") -> None:
        """Leave together with all others; with a reason, leave at once and end the others."""
        if why:
            self._watch.end()
            with suppress(Exception):  # the others notice without it
                self._client.key_value_set(f"{PREFIX}/gone/{self.index}", why)
                time.sleep(1)  # lets the others read it before the coordinator ends with this process
            return
        self.gather("done")
        self._watch.end()
        jax.distributed.shutdown()
        if self._service:
            self._service.communicate(b"done\n")

    def await_verdict(self) -> None:
        """Wait until the watch notices a lost host and ends this process."""
        time.sleep(min(LOST, self._patience) + 3)


def _client() -> Any:
    """Return JAX's client of the coordinator, a private object."""
    try:
        from jax._src.distributed import global_state

        return global_state.client
    except (ImportError, AttributeError):
        raise ConfigError(NO_JAX) from None


def first_line(error: Exception) -> str:
    """Return the beginning of an error's message."""
    return next(iter(str(error).splitlines()), "")[:200] or type(error).__name__
