"""Training by plan: replay steps and losses of a model and an optimizer.

A plan is made on first use of a shape. Model and optimizer stay ordinary objects: their arrays are views of the
arena, under the same names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.errors import ConfigError
from byhand.formats.registry import FORMATS
from byhand.optim import decay_at
from byhand.quantities import counted
from byhand.runtimes.cores import cores
from byhand.runtimes.loops.kernels.formats.contract import products_in
from byhand.runtimes.loops.lower.training import Lowering
from byhand.runtimes.loops.lower.update import UpdateSettings, by_kernels
from byhand.runtimes.loops.machine.blas import find_blas, one_core_each
from byhand.runtimes.loops.pattern.rules import Rule
from byhand.runtimes.loops.program import controls
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.plan import Plan, make_plan
from byhand.runtimes.loops.run.replay import ready_for
from byhand.runtimes.loops.run.runner import Runner
from byhand.runtimes.loops.run.thread_team import team_size
from byhand.runtimes.protocol import Batch, Shape
from byhand.runtimes.sessions import KnownOutcome, LocalSession, checked, checked_loss, checked_step, count_targets


class LoopsSession(LocalSession):
    """Steps and losses of one model, replayed; see `TrainingSession`.

    model      float32; its arrays move into the arena
    optimizer  without one the session cannot `step`
    threads    shares of the batch, all cores if not given
    blas       matrix products: "auto", "tiles" or "scipy" (see `blas.py`)
    dtype      of the linear layers' matmul inputs; storage and sums are float32
    rules      fusion rules; training's if not given
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any = None,
        threads: int | None = None,
        blas: str = "auto",
        dtype: str = "float32",
        rules: tuple[Rule, ...] | None = None,
    ) -> None:
        if any(str(p.dtype) != "float32" for p in model.parameters().values()):
            raise ConfigError("the loops runtime computes in float32. Use the numpy runtime for float64.")
        self.model = model
        self.optimizer = optimizer
        self.threads = team_size(threads)
        self.blas = find_blas(blas)
        self._dtype = dtype
        self.products = products_in(FORMATS[dtype])  # may request AMX for all threads started later
        self.rules = rules
        self.arena = Arena(model.parameters(), self.threads, optimizer is not None, optimizer)
        self._settings, self._by_kernels = UpdateSettings(self.arena.regions), by_kernels(self.arena.regions)
        self.runner = Runner(self.arena, self.threads, self.blas, self._settings.starts[-1])
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._active: Plan | None = None

    def step(self, batches: Sequence[Batch], max_norm: float = 0.0) -> KnownOutcome:
        """Make one update from micro-batches (tokens, targets), each (B, T); return mean loss and gradient norm.

        The mean is over all targets, whatever the shapes of the micro-batches. The update is the optimizer's with its
        current lr, after clipping to `max_norm` (0: never). If loss or norm is not finite, nothing is updated. Even
        after an interrupt, optimizer.t has counted the step if and only if all parameters were updated.
        """
        optimizer, micro_batches = self.optimizer, checked_step(self.model, self.optimizer, batches)
        plans = [self.plan("train", tokens.shape) for tokens, _ in micro_batches]
        widest = max(plans, key=lambda plan: len(plan.shares))
        self.runner.settle()
        self.arena.adopt()
        t, c = optimizer.t + 1, self._cleared()
        c[controls.MAX_NORM], c[controls.AVERAGING] = max_norm, 1 - decay_at(t, optimizer.settings.ema)
        self._settings.write(c, optimizer.lr, t)
        c[controls.WEIGHT] = 1 / count_targets(micro_batches)
        optimizer.count_with(c[controls.APPLIED : controls.APPLIED + 1])  # counted by the kernel that updates
        self._compute_and_update(list(zip(plans, micro_batches, strict=True)), widest)
        loss = self._loss()
        if self._by_kernels:
            return KnownOutcome(loss, float(c[controls.NORM]))
        return KnownOutcome(loss, self._by_numpy(max_norm) if math.isfinite(loss) else math.nan)

    def _by_numpy(self, max_norm: float) -> float:
        """Update the parameters by the equations' forward halves, from the summed gradients; return their norm."""
        parameters = self.model.parameters()
        for name, parameter in parameters.items():
            parameter.grad = None if parameter.frozen else self.arena.gradient(name)
        with np.errstate(all="ignore"):
            norm = self.optimizer.clipped_step(parameters, max_norm)
        self.model.zero_grad()
        return norm

    def _cleared(self) -> np.ndarray:
        """Return the controls, zeroed; counted steps stay counted."""
        if self.optimizer:
            self.optimizer.t = self.optimizer.t
        self.runner.controls[:] = 0
        return self.runner.controls

    def _compute_and_update(self, work: list[tuple[Plan, tuple[np.ndarray, np.ndarray]]], widest: Plan) -> None:
        """Replay the micro-batches, and the update over the shares of the widest plan."""
        written, updates = 0, False
        for i, (plan, batch) in enumerate(work):
            for share in plan.shares:
                share.adds = share.number < written
            written = max(written, len(plan.shares))
            updates = i == len(work) - 1 and len(plan.shares) == len(widest.shares)
            self._put(plan, *batch)
            self._replay(plan, updates=updates)
        if not updates:
            self._replay(widest, computes=False)

    def loss(self, tokens: Any, targets: Any, counted: int | None = None, average: bool = False) -> float:
        """Return the mean loss of a batch, or of the last `counted` targets of its rows, without gradients."""
        tokens, targets = checked_loss(self.model, tokens, targets, counted)
        plan = self.plan("average" if average and self.arena.regions.averages else "loss", tokens.shape)
        self.runner.settle()
        self.arena.adopt()
        self._cleared()[controls.WEIGHT] = 1 / count_targets([(tokens, targets)])
        self._put(plan, tokens, targets)
        self._replay(plan, updates=False)
        return self._loss()

    def row_losses(self, tokens: Any, targets: Any, counted: np.ndarray) -> np.ndarray:
        """Return the summed loss of each row's marked targets; each thread computes one row at a time."""
        tokens, targets = checked(self.model, tokens, targets)
        targets, sums = np.where(counted, targets, -1), list[float]()
        plan, beside = self._rows_plan(tokens.shape[1])
        self.runner.settle()
        self.arena.adopt()
        for first in range(0, len(tokens), beside):
            rows = np.arange(first, first + beside)
            wanted = (rows < len(tokens))[:, None]  # fewer rows than threads may be left
            rows = np.minimum(rows, len(tokens) - 1)
            self._cleared()[controls.WEIGHT] = 1
            self._put(plan, tokens[rows], np.where(wanted, targets[rows], -1))
            self._replay(plan, updates=False)
            sums += [self.runner.controls[controls.loss_slot(share.number)] for share in plan.shares]
        return np.array(sums[: len(tokens)])

    def _rows_plan(self, length: int) -> tuple[Plan, int]:
        """Return a plan with one row per share, and the number of shares."""
        plan = self.plan("loss", (self.threads, length))
        if any(share.batch != 1 for share in plan.shares):
            plan = self.plan("loss", (1, length))
        return plan, len(plan.shares)

    def plan(self, kind: str, shape: tuple[int, ...]) -> Plan:
        """Return the plan of a "train" step, a "loss" or the "average"'s loss for tokens (B, T); made once."""
        if (kind, shape) not in self._plans:
            ready_for(self._planned(kind, shape).tables)
        return self._plans[kind, shape]

    def _planned(self, kind: str, shape: tuple[int, ...]) -> Plan:
        if (kind, shape) not in self._plans:
            inputs = {"tokens": shape, "targets": shape}
            tiles = self.blas.tiles and one_core_each(shape[0], self.threads)
            parameters = self.arena.regions.averages if kind == "average" else 0
            how = Lowering(kind == "train", self.products, self.rules, tiles)
            self._plans[kind, shape] = make_plan(self.model.loss, inputs, self.arena, how, parameters)
        return self._plans[kind, shape]

    def prepare(self, steps: Sequence[Shape], losses: Sequence[Shape]) -> None:
        """Make the plans of steps and losses for micro-batches of these shapes, and compile their kernels."""
        kinds = ("loss", *(["average"] if self.arena.regions.averages else []))
        wanted = [*(("train", shape) for shape in steps), *((kind, shape) for kind in kinds for shape in losses)]
        ready_for([table for kind, shape in wanted for table in self._planned(kind, shape).tables])

    @property
    def description(self) -> str:
        """How it computes."""
        how = f"; {self._dtype}: {self.products.how}" if self.products.how else ""
        return f"the graph compiled, {counted(self.threads, 'thread')}{how}"

    def provenance(self) -> dict[str, Any]:
        """Return the runtime's name, its threads and its matrix multiplication."""
        return {"runtime": "loops", "threads": self.threads, "blas": self.multiplies}

    @property
    def multiplies(self) -> str:
        """The implementation of matrix products."""
        return f"{self.products.how}; {self.blas.name}" if self.products.kernel else self.blas.name

    def _loss(self) -> float:
        return sum(self.runner.controls[controls.CONTROLS : controls.end(self.threads) : 2].tolist())

    def _put(self, plan: Plan, tokens: np.ndarray, targets: np.ndarray) -> None:
        """Write every share's rows of the batch, and the plan's constants if another plan ran before."""
        if plan is not self._active:
            plan.write_constants()
            self._active = plan
        first = 0
        for share in plan.shares:
            last = first + share.batch
            for name, array in (("tokens", tokens), ("targets", targets)):
                share.array(share.inputs[name])[...] = array[first:last]
            first = last

    def _replay(self, plan: Plan, computes: bool = True, updates: bool = True) -> None:
        def work(i: int) -> None:
            if i < len(plan.shares):
                share = plan.shares[i]
                self.runner.replay(share.tables[share.adds], plan.parts(share, computes, updates), share)

        # Each time: micro-batches and update may have different plans, and other sessions use the same library.
        self.blas.set_threads(min(self.threads, cores()) if len(plan.shares) == 1 else 1)
        self.runner.begin()
        self.runner.run(work, self._give_up)

    def _give_up(self, i: int) -> None:
        """Release the shares that wait for this one, and stop the update, unless it has passed the barriers."""
        if self.runner.signals[controls.own_signal(i)] < controls.BARRIERS:
            self.runner.controls[controls.GIVEN_UP] = 1
            self.runner.signals[controls.RELEASED] = 1
