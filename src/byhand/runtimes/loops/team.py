"""Team: one thread for each share of the batch; the calling thread takes the first share itself."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Inbox = queue.SimpleQueue[Callable[[int], None] | None]
Outcomes = queue.SimpleQueue[BaseException | None]


class Team:
    """Threads that wait for work. `run(work)` calls work(0), work(1), ... side by side and returns when all have."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._inboxes: list[Inbox] = []
        self._done: Outcomes = queue.SimpleQueue()
        for i in range(1, size):
            inbox: Inbox = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(i, inbox, self._done), name=f"byhand-{i}", daemon=True).start()
            self._inboxes.append(inbox)

    def run(self, work: Callable[[int], None]) -> None:
        """Run work(i) for each thread i; raise the first error once all have stopped."""
        for inbox in self._inboxes:
            inbox.put(work)
        failed = _outcome(work, 0)
        for _ in self._inboxes:
            failed = self._done.get() or failed
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Let the threads end."""
        for inbox in self._inboxes:
            inbox.put(None)
        self._inboxes = []


def _serve(i: int, inbox: Inbox, done: Outcomes) -> None:
    while (work := inbox.get()) is not None:
        outcome = _outcome(work, i)
        del work  # it holds the arena, which may be dropped while this thread waits
        done.put(outcome)


def _outcome(work: Callable[[int], None], i: int) -> BaseException | None:
    try:
        work(i)
    except BaseException as error:  # handed to the caller's thread, KeyboardInterrupt too
        return error
    return None
