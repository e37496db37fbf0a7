"""Runner: the threads that replay plans, and the controls and signals they share with the process."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np

from byhand.runtimes.loops.encode.tables import WIDTH
from byhand.runtimes.loops.machine.blas import Blas
from byhand.runtimes.loops.machine.native import waiting_addresses
from byhand.runtimes.loops.program.calls import Call, Part
from byhand.runtimes.loops.program.controls import RELEASED, own_signal
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.replay import Resources, replay
from byhand.runtimes.loops.run.share import Share
from byhand.runtimes.loops.run.thread_team import ThreadTeam


class Runner:
    """The threads, and the controls and signals they share with the process.

    controls  see `program/controls.py`
    times     if a list, the first share runs call by call and appends each one's ns. For profiling only: an interrupt
              may then leave an update partly applied
    """

    def __init__(self, arena: Arena, threads: int, blas: Blas, controls: int) -> None:
        self.arena = arena
        self.controls = np.zeros(controls)
        self.signals = np.zeros(own_signal(threads), np.int64)
        self.times: list[int] | None = None
        self._native = np.array([blas.sgemm, *waiting_addresses()], np.int64)
        self._found: Resources | None = None
        self._team = ThreadTeam(threads)
        weakref.finalize(self, self._team.close)

    def settle(self) -> None:
        """Wait until no thread works."""
        self._team.settle()

    def begin(self) -> None:
        """Reset the signals, and look up the arena, which may have grown."""
        self.signals[:] = 0
        memory = self.arena.memory
        if self._found is None or self._found.memory is not memory:
            self._found = Resources(memory, self.arena.words, self.controls, self.signals, self._native)

    def run(self, work: Callable[[int], None], give_up: Callable[[int], None] | None = None) -> None:
        """Run work(i) in each thread; give_up(i) releases the others if one fails."""
        self._team.run(work, give_up or self._give_up)

    def replay(self, table: np.ndarray, parts: Iterable[Part], share: Share, times: int = 1) -> None:
        """Replay the parts of a table, each `times` times, and run the steps in Python between them."""
        resources = self._resources
        timed = self.times if share.number == 0 else None
        for part in parts if timed is None else one_by_one(parts):
            begun = perf_counter_ns()
            if not isinstance(part, Call):
                replay(table, *part, times, resources)
            else:
                share.run(part)
            if timed is not None:
                timed.append(perf_counter_ns() - begun)

    def time_calls(self, run: Callable[[], Any], rounds: int) -> np.ndarray:
        """Return the least ms of each call of the first share over some runs; the others run as usual."""
        run()
        rows: list[list[int]] = []
        for _ in range(rounds):
            self.times = []
            run()
            rows.append(self.times)
        self.times = None
        return np.maximum(np.min(rows, axis=0) - self._least_ns(), 0) / 1e6

    def _least_ns(self) -> int:
        """Return the least time for replaying no row."""
        table = np.zeros((0, WIDTH), np.int64)
        begun = [perf_counter_ns()]
        for _ in range(200):
            replay(table, 0, 0, 1, self._resources)
            begun.append(perf_counter_ns())
        return int(np.diff(begun).min())

    @property
    def _resources(self) -> Resources:
        assert self._found, "nothing has begun"
        return self._found

    def _give_up(self, i: int) -> None:
        """Release all barriers; results from now on are discarded."""
        self.signals[RELEASED] = 1


def one_by_one(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts call by call."""
    for part in parts:
        yield from [part] if isinstance(part, Call) else ((i, i + 1) for i in range(*part))
