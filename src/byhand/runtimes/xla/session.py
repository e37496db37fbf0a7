"""Training by XLA: one compiled, donated step; losses; the state by name."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec

from byhand.errors import DataError
from byhand.layers.parameter import Arrays
from byhand.optim import State, assign
from byhand.runtimes.protocol import Batch, Request, Shape
from byhand.runtimes.sessions import checked, checked_loss, checked_step, count_targets, held, state_of
from byhand.runtimes.xla import compiling
from byhand.runtimes.xla.gradients import row_losses, summed_loss
from byhand.runtimes.xla.layout import Layout
from byhand.runtimes.xla.mesh import TOKENS, Mesh, devices_found, mesh_of
from byhand.runtimes.xla.step import traced_step

log = logging.getLogger(__name__)


class XlaOutcome:
    """The numbers of a step; reading one waits for the device."""

    def __init__(self, loss: Any, norm: Any, refused: Callable[[], None]) -> None:
        self._numbers = loss, norm
        self._refused: Callable[[], None] | None = refused

    def settle(self) -> tuple[float, float]:
        """Wait for the step; if it made no update, tell the session once."""
        loss, norm = (float(number) for number in self._numbers)
        refused, self._refused = self._refused, None
        if refused and not (math.isfinite(loss) and math.isfinite(norm)):
            refused()
        return loss, norm

    @property
    def loss(self) -> float:
        """The mean loss in nats, before the update."""
        return self.settle()[0]

    @property
    def norm(self) -> float:
        """The gradient's global norm before clipping."""
        return self.settle()[1]


class XlaSession:
    """Steps and losses on the devices of a mesh; see `TrainingSession`.

    Parameters and moments stay on the devices; `state` copies them to model and optimizer.
    """

    def __init__(self, model: Any, optimizer: Any, request: Request) -> None:
        mesh = mesh_of(request.mesh)
        compiling.prepare(mesh.size, request.hosts)
        devices = devices_found()
        self.mesh = mesh if request.mesh or request.hosts == 1 else Mesh(data=len(devices))
        self.model = model
        self.optimizer = optimizer
        self.settings = compiling.settings(request, self.mesh, devices[0].platform)
        if request.hosts > 1 and devices[0].platform == "cpu":
            compiling.hush()
        self.layout = Layout(model.layers, model.config, self.mesh)
        self._held = State({}, {}, {})  # on the devices
        self._left = State({}, {}, {})  # the host's arrays that were put on the devices or fetched from them
        self._ahead: XlaOutcome | None = None  # the last step's, until its arrays are fetched to the host
        self._made: dict[tuple[Any, ...], Callable[..., Any]] = {}

    @property
    def description(self) -> str:
        """A short text on how it computes."""
        kind, hosts = self.mesh.grid.devices.flat[0].device_kind, jax.process_count()
        return f"compiled by XLA for {self.mesh.size} × {kind}, {self.mesh}{f', on {hosts} hosts' * (hosts > 1)}"

    def provenance(self) -> dict[str, Any]:
        """Return the runtime's name, its mesh, kind of device, and compiler."""
        kind = self.mesh.grid.devices.flat[0].device_kind
        found = {"runtime": "xla", "mesh": str(self.mesh), "device": kind, "jax": jax.__version__}
        return found if (hosts := jax.process_count()) == 1 else {**found, "hosts": hosts}

    def rows(self, count: int) -> slice:
        """Return which of a batch's `count` rows this process reads."""
        return self.mesh.own_rows(count)

    def prepare(self, steps: Sequence[Shape], losses: Sequence[Shape]) -> None:
        """Compile losses, and the step of these micro-batches."""
        self._take_over()
        if steps:
            self._step(tuple(steps))
        for b, t in losses:
            self._loss((b, t), t)

    def step(self, batches: Sequence[Batch], max_norm: float) -> XlaOutcome:
        """Make one update; see `TrainingSession`."""
        optimizer = self.optimizer
        micro_batches = [self._fitting(*batch) for batch in checked_step(self.model, optimizer, batches)]
        count_targets(micro_batches)  # refuses a step without any
        self._settle()
        self._take_over()
        step = self._step(tuple(tokens.shape for tokens, _ in micro_batches))
        numbers = np.float32(optimizer.lr), np.float32(max_norm), np.int32(optimizer.t + 1)
        placed = [tuple(map(self._placed, batch)) for batch in micro_batches], tuple(map(self._placed, numbers))
        counts = optimizer.one_more()
        held, loss, norm = step(self._held, *placed)
        ahead = XlaOutcome(loss, norm, self._refused)
        assign([(self, "_held", held), (self, "_ahead", ahead), counts])
        return ahead

    def loss(self, tokens: Any, targets: Any, counted: int | None = None, average: bool = False) -> float:
        """Return the mean loss of a batch, or of the last `counted` targets of its rows."""
        tokens, targets = self._fitting(*checked_loss(self.model, tokens, targets, counted))
        self._settle()
        self._take_over()
        b, t = tokens.shape
        arrays = (average and self._held.averages) or self._held.parameters
        return float(self._loss((b, t), counted or t)(arrays, [(self._placed(tokens), self._placed(targets))]))

    def row_losses(self, tokens: Any, targets: Any, counted: np.ndarray) -> np.ndarray:
        """Return the sum of the losses of each row's marked targets."""
        tokens, targets = self._fitting(*checked(self.model, tokens, targets))
        self._settle()
        self._take_over()
        batch = [(self._placed(tokens), self._placed(np.where(counted, targets, -1).astype(np.int32)))]
        sums = self._loss(tokens.shape, None)(self._held.parameters, batch)
        return np.asarray(sums, np.float64)

    def state(self) -> State:
        """Update the arrays of model and optimizer, except replaced ones; return all."""
        self._settle()
        if self._ahead is not None:
            self._ahead = None
            made = State.each(self.layout.fetched, self._held)

            def after(new: dict[str, Any], now: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
                return {n: now[n] if now.get(n) is not old.get(n) else array for n, array in new.items()}

            arrays = State.each(after, made, held(self.model, self.optimizer), self._left)
            for name, tensor in self.model.parameters().items():
                tensor.data = arrays.parameters[name]
            self.optimizer.restore(arrays.moments, arrays.averages)
            self._left = made
        return state_of(self.model, self.optimizer)

    def own(self) -> State:
        """Return the arrays that this process saves: all, or with several hosts its parts."""
        if jax.process_count() == 1:
            return self.state()
        self._settle()
        self._take_over()
        return State.each(self.layout.own, self._held)

    def _settle(self) -> None:
        if self._ahead is not None:
            self._ahead.settle()

    def _refused(self) -> None:
        """Uncount a step with a loss or norm that was not finite."""
        self.optimizer.t -= 1

    def _take_over(self) -> None:
        """Place arrays that were replaced in model or optimizer on the devices."""
        host = held(self.model, self.optimizer)

        def changed(now: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
            return {n: a for n, a in now.items() if a is not old.get(n)} or dict.fromkeys(old.keys() - now.keys())

        if self._held.parameters and not any(map(len, State.each(changed, host, self._left).dictionaries())):
            return
        self.state()
        host = held(self.model, self.optimizer)
        self._held = State.each(self.layout.placed, host if self.optimizer is None else self._begun(host))
        self._left = host

    def _begun(self, host: State) -> State:
        """Return the arrays of model and optimizer; missing ones get their initial values."""
        arrays, optimizer = host.parameters, self.optimizer
        moments: dict[str, dict[str, Any]] = {kind: {} for kind in host.moments}
        for name, array in ((n, a) for n, a in arrays.items() if not self.model.parameters()[n].frozen):
            for kind in optimizer.rule(name, array).state:
                moments[kind][name] = host.moments[kind].get(name, np.zeros_like(array))
        averages = {n: host.averages.get(n, a) for n, a in arrays.items()} if optimizer.settings.ema else {}
        return State(arrays, moments, averages)

    def _fitting(self, tokens: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a batch in the device's types; DataError if it is longer than the window."""
        if tokens.shape[1] > (most := self.model.config.seq_len):
            raise DataError(f"{tokens.shape[1]} tokens, but the model's seq_len is {most}. Pass the last {most}.")
        return tokens.astype(np.int32), targets.astype(np.int32)

    def _placed(self, array: Any) -> Any:
        """Put an array on the devices: a batch sharded along axes that the mesh divides, a scalar replicated."""
        if self.mesh.size == 1:
            return array
        spec = self.mesh.batch_spec(array.shape) if np.ndim(array) else PartitionSpec()
        return self.mesh.put(array, self.mesh.sharding(spec))

    def _step(self, shapes: tuple[Shape, ...]) -> Callable[..., Any]:
        """Return the step of micro-batches of these shapes, compiled once."""
        if (key := ("step", *shapes)) not in self._made:
            traced = traced_step(self.layout, self.optimizer, self.settings, shapes)
            example = [(self._placed(np.zeros(shape, np.int32)),) * 2 for shape in shapes]
            numbers = tuple(map(self._placed, (np.float32(0), np.float32(0), np.int32(1))))
            if whole := {b for b, _ in shapes if b % self.mesh.rows}:
                log.warning(
                    "%d devices cannot share %s rows: each computes all. "
                    "A batch size that is a multiple of %d is faster",
                    *(self.mesh.rows, min(whole), self.mesh.rows),
                )
            everywhere = self.mesh.sharding(PartitionSpec())
            places = jax.tree.map(lambda a: a.sharding, self._held), everywhere, everywhere
            what = f"step of {' + '.join(f'{b} × {t}' for b, t in shapes)}"
            arguments = self._held, example, numbers
            self._made[key] = self._compiled(what, traced, arguments, donate_argnums=0, out_shardings=places)
        return self._made[key]

    def _loss(self, shape: Shape, counted: int | None) -> Callable[..., Any]:
        """Return the loss of a batch of this shape, or with None the sums of its rows, compiled once."""
        if (key := ("loss", shape, counted)) not in self._made:
            mesh, whole = self.mesh, counted != shape[1]  # the last targets may all lie on one device
            settings = self.settings if whole else replace(self.settings, positions=mesh.positions(shape[1]))

            def traced(parameters: Arrays, batches: list[Batch]) -> Any:
                if counted is None:
                    return row_losses(self.layout, parameters, batches[0], settings)
                found = summed_loss(self.layout, parameters, batches[0], counted, settings)
                loss, count = jax.lax.psum(found, TOKENS) if mesh.tokens > 1 else found
                return loss / count

            spec = mesh.batch_spec(shape, positions=not whole)
            traced = self.layout.by_tokens(traced, [spec], PartitionSpec() if counted else PartitionSpec(spec[0]))
            example = [(self._placed(np.zeros(shape, np.int32)),) * 2]
            self._made[key] = self._compiled(
                f"loss of {shape[0]} × {shape[1]}", traced, (self._held.parameters, example)
            )
        return self._made[key]

    def _compiled(
        self, what: str, traced: Callable[..., Any], arguments: tuple[Any, ...], **settings: Any
    ) -> Callable[..., Any]:
        log.info("compiling the %s tokens for %s", what, self.mesh)
        return compiling.compiled(jax.jit(traced, **settings).lower(*arguments))
