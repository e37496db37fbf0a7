"""GenerationRunner: runs the plans of generation, every thread its part, or one thread all parts in turn."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from time import perf_counter

import numpy as np

from byhand.runtimes.loops.kernels.threads.barrier import STOPPED
from byhand.runtimes.loops.lowering.controls import own_signal
from byhand.runtimes.loops.lowering.generation_plans import GenerationPlan
from byhand.runtimes.loops.lowering.ir import Call
from byhand.runtimes.loops.machine.blas import Blas
from byhand.runtimes.loops.machine.native import yield_address
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.replay import Resources, replay
from byhand.runtimes.loops.run.thread_team import ThreadTeam


class GenerationRunner:
    """The threads, and the numbers that they share with the process.

    controls  settings of sampling and uniform numbers, as `kernels/sampling/sampling.py` lists them
    """

    def __init__(self, arena: Arena, threads: int, blas: Blas, controls: int) -> None:
        self.arena = arena
        self.controls = np.zeros(controls)
        self._native = np.array([blas.sgemm, yield_address()], np.int64)
        self._signals = np.zeros(own_signal(threads), np.int64)
        self._located: Resources | None = None
        self._team = ThreadTeam(threads)
        weakref.finalize(self, self._team.close)

    def settle(self) -> None:
        """Wait until no thread works any more."""
        self._team.settle()

    def prepare(self, plan: GenerationPlan) -> None:
        """Run what a plan needs once."""
        replay(plan.preparations, 0, len(plan.preparations), 1, self._resources())

    def run(self, plan: GenerationPlan, alone: bool, times: int = 1) -> None:
        """Run a plan, that many times over or until the threads agree to stop; with steps in Python always alone."""
        self._signals[:] = 0
        resources = self._resources()
        if plan.has_python:
            self._run_with_python(plan, times)
        elif alone:
            replay(plan.alone, 0, len(plan.alone), times, resources)
        else:
            self._team.run(lambda i: replay(plan.tables[i], 0, len(plan.tables[i]), times, resources), self._give_up)

    def _run_with_python(self, plan: GenerationPlan, times: int) -> None:
        resources = self._resources()
        for _ in range(times):
            for part in plan.in_turn:
                if not isinstance(part, Call):
                    replay(plan.alone, *part, 1, resources)
                elif part.run is not None:
                    with np.errstate(all="ignore"):  # what is not finite is found where a token is drawn
                        part.run(plan.shares[0])
            if self._signals[STOPPED]:
                break

    def time_calls(self, plan: GenerationPlan, begin: Callable[[], None], rounds: int) -> np.ndarray:
        """Return the least ms of each call of the first thread over rounds that `begin`; the others run as always."""
        table, resources = plan.tables[0], self._resources()
        best, nothing = np.full(len(table), np.inf), np.inf
        for _ in range(rounds + 1):
            begin()
            self._signals[:] = 0
            times = np.zeros(len(table))

            def one_by_one(times: np.ndarray = times) -> None:
                for i, call in enumerate(plan.shares[0].calls):
                    begun = perf_counter()
                    if call.run is None:
                        replay(table, i, i + 1, 1, resources)
                    else:
                        call.run(plan.shares[0])
                    times[i] = perf_counter() - begun

            self._team.run(
                lambda i: replay(plan.tables[i], 0, len(plan.tables[i]), 1, resources) if i else one_by_one(),
                self._give_up,
            )
            best = np.minimum(best, times)
            for _ in range(20):
                begun = perf_counter()
                replay(table, 0, 0, 1, resources)
                nothing = min(nothing, perf_counter() - begun)
        return 1e3 * np.maximum(best - nothing, 0)

    def _resources(self) -> Resources:
        if self._located is None or self._located.memory is not self.arena.memory:  # a plan needed a larger arena
            self._located = Resources(self.arena.memory, self.arena.words, self.controls, self._signals, self._native)
        return self._located

    def _give_up(self, i: int) -> None:
        """Let no thread wait at a barrier any more; what they compute from now on is thrown away."""
        self._signals[0] = 1
