"""Team: one thread for each share of the batch; the calling thread takes the first share itself."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Team:
    """Threads that wait for work. `run(work)` calls work(0), work(1), ... side by side and returns when all have."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._inboxes: list[queue.SimpleQueue[Callable[[int], None] | None]] = []
        self._done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        for i in range(1, size):
            inbox: queue.SimpleQueue[Callable[[int], None] | None] = queue.SimpleQueue()
            threading.Thread(target=self._serve, args=(i, inbox), name=f"byhand-{i}", daemon=True).start()
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

    def _serve(self, i: int, inbox: queue.SimpleQueue[Callable[[int], None] | None]) -> None:
        while (work := inbox.get()) is not None:
            self._done.put(_outcome(work, i))


def _outcome(work: Callable[[int], None], i: int) -> BaseException | None:
    try:
        work(i)
    except BaseException as error:  # handed to the caller's thread, KeyboardInterrupt too
        return error
    return None
