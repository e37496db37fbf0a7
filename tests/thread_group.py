"""Threads that stand for hosts, so that one process tests what several do together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from byhand.runtimes.process_group import ProcessGroup
from cli.process import PATIENCE


class ThreadGroup(ProcessGroup):
    """One of the threads that act as hosts."""

    def __init__(self, index: int, said: list[str], barrier: threading.Barrier) -> None:
        self.index, self.count = index, barrier.parties
        self._said, self._barrier = said, barrier

    def gather(self, value: str) -> list[str]:
        """Return each thread's message."""
        self._said[self.index] = value
        self._barrier.wait(PATIENCE)
        found = [*self._said]
        self._barrier.wait(PATIENCE)
        return found


def on_hosts(count: int, work: Callable[[ProcessGroup], Any]) -> list[Any]:
    """Return what `work` returns or raises on each of so many hosts."""
    said, barrier = [""] * count, threading.Barrier(count)
    return on_each([ThreadGroup(index, said, barrier) for index in range(count)], work)


def on_each(groups: Sequence[ProcessGroup], work: Callable[[Any], Any]) -> list[Any]:
    """Return what `work` returns or raises for each group, in threads."""
    found = [None] * len(groups)

    def run(index: int) -> None:
        try:
            found[index] = work(groups[index])
        except Exception as error:
            found[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(groups))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
