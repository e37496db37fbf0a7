"""ThreadTeam: one thread for each share of the batch; the calling thread takes the first share itself.

The calling thread can be interrupted at any point. Afterwards no thread may keep writing, and the next job must not
see results of the interrupted one. So every job keeps its own outcomes, a thread may get a job twice, and `run`
waits for all threads however it ends.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

from byhand.errors import ConfigError
from byhand.runtimes.cores import MOST_THREADS, cores

Work = Callable[[int], None]


def team_size(threads: int | None) -> int:
    """Return the number of threads to use; None means all cores. ConfigError if it is out of range."""
    size = cores() if threads is None else threads
    if not 1 <= size <= MOST_THREADS:
        raise ConfigError(f"threads is {size}, but must be between 1 and {MOST_THREADS}. Use {cores()}.")
    return size


class Job:
    """Work for every thread, and each thread's progress."""

    __slots__ = ("cancelled", "errors", "finished", "give_up", "started", "tick", "work")

    def __init__(self, work: Work, give_up: Work, size: int) -> None:
        self.work = work
        self.give_up = give_up
        self.started = False  # every thread has it
        self.cancelled = False  # threads that have not begun must not begin
        self.errors: list[BaseException] = []
        self.finished = [False] * size
        self.tick: queue.SimpleQueue[None] = queue.SimpleQueue()  # one entry for each finished thread

    def do(self, i: int) -> None:
        """Do a thread's part and keep its error."""
        try:
            if not self.cancelled:
                self.work(i)
        except BaseException as error:  # re-raised in the calling thread
            self.errors.append(error)
            self.give_up(i)
        self.finished[i] = True
        self.tick.put(None)


Inbox = queue.SimpleQueue[Job | None]


class ThreadTeam:
    """A pool of threads. `run(work)` calls work(0), work(1), ... concurrently and joins them."""

    def __init__(self, size: int) -> None:
        self.size = team_size(size)
        self._inboxes: list[Inbox] = []
        self._last: Job | None = None
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._inboxes = []
        try:
            for i in range(1, self.size):
                inbox: Inbox = queue.SimpleQueue()
                self._inboxes.append(inbox)
                threading.Thread(target=_serve, args=(i, inbox), name=f"byhand-{i}", daemon=True).start()
        except BaseException as error:
            started = len(self._inboxes) - 1
            self.close()
            if isinstance(error, (RuntimeError, MemoryError)):  # the system refused a thread
                less = max(1, started // 2)
                raise ConfigError(
                    f"the system started only {started} of {self.size - 1} threads. End other programs or use {less}."
                ) from None
            raise

    def run(self, work: Work, give_up: Work = lambda i: None) -> None:
        """Run work(i) for each thread i; raise the first error once all have stopped.

        give_up(i) is called if work(i) failed, was interrupted, or never began: the others must not wait for it.
        """
        if self._process != os.getpid():  # a fork keeps only the forking thread
            self._last = None
            self._start()
        self.settle()
        if not self._inboxes:
            work(0)
            return
        job = self._last = Job(work, give_up, self.size)
        try:
            try:
                for inbox in self._inboxes:
                    inbox.put(job)
                job.started = True
                work(0)
                job.finished[0] = True
            finally:
                self._finish(job)
        finally:
            self.settle()  # the wait above may have been interrupted
        if job.errors:
            raise job.errors[0]

    def settle(self) -> None:
        """Wait until no thread works; needed after `run` only if its wait was interrupted twice."""
        if self._last is not None:
            self._finish(self._last)

    def _finish(self, job: Job) -> None:
        """Wait until no thread works on the job; it may be partly started, or finished already."""
        if not job.finished[0]:
            job.cancelled = True
            job.give_up(0)
            job.finished[0] = True
        if not job.started:  # an unknown number of threads have it
            for inbox in self._inboxes:
                inbox.put(job)
        while False in job.finished:
            job.tick.get()
        self._last = None

    def close(self) -> None:
        """End the threads."""
        for inbox in self._inboxes:
            inbox.put(None)
        self._inboxes = []


def _serve(i: int, inbox: Inbox) -> None:
    while (job := inbox.get()) is not None:
        job.do(i)
        del job  # releases the arena while this thread waits
