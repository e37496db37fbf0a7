"""Training: the model, its optimizer and its data, one update at a time. `runs/run.py` has the loop."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from byhand.config import OptimConfig, TrainConfig
from byhand.corpus.dataset import Corpus, batch_generator, padded
from byhand.errors import ByhandError, DataError, NonFiniteError
from byhand.model import TinyGPT, declared
from byhand.optim import Optimizer
from byhand.runs import checkpoint
from byhand.runs.contents import Checkpoint
from byhand.runtimes.protocol import Batch, Request, Runtime, TrainingSession, to_train
from byhand.runtimes.provenance import difference, resumed
from byhand.runtimes.registry import begin
from byhand.schedule import learning_rate


@dataclass(frozen=True, slots=True)
class Progress:
    """One update: losses in nats per token, gradient norm before clipping, tokens seen so far, tokens/s.

    bytes_per_token  mean bytes of a predicted token of the validation windows
    """

    step: int
    steps: int
    loss: float
    lr: float
    grad_norm: float
    tokens: int
    tokens_per_second: float
    val_loss: float | None = None
    bytes_per_token: float = 1.0


class Trainer:
    """A model, its optimizer and its data, at some step of a run.

    config      the run's settings as given; checkpoints keep these
    choice      the runtime that computes it here, and why not a faster one
    train, val  the two parts of the text; checkpoints keep their tokenizer
    start       a checkpoint to start from, or None for step 0
    record      further state of every checkpoint: `text` identifies the text (path, bytes, sha256); `planned`, if the
                number of steps changed, has the earlier numbers, each with the step until which it held; `best`, with
                --keep-best, is the step with the lowest validation loss
    """

    alone = True  # no other hosts train with it
    shows = True  # of several hosts, one shows the run and writes its metrics

    def __init__(
        self,
        config: TrainConfig,
        train: Corpus,
        val: Corpus,
        start: Checkpoint | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> None:
        require_same_tokenizer(train, val, start)
        train.tokenizer.require_vocabulary(config.model.vocab_size)
        self.config = config
        self.train, self.val = train, val
        self.tokenizer = train.tokenizer
        self.record = {"text": {}, **(record or {})}
        self._optimizer = Optimizer(config.optim, declared(config.model))
        if start is None:
            self._model = TinyGPT(config.model, config.seed, config.array_dtype)
        else:
            self._model = start.model(average=False)
            self._optimizer.t = start.step
            self._optimizer.restore(start.moments, start.averages)
        self._before = start.state.get("used") if start else None
        request = self.request(config)
        self._request = resumed(request, self._before) if start else request
        self.session, self.choice = begin(self._request, self._session)
        self.prepared = False
        self._next: tuple[int, list[Batch]] = (-1, [])  # a step's micro-batches, prefetched while the device computes
        self.val_windows = val.spread_windows(config.eval_windows, config.length)
        self.bytes_per_token = val.bytes_of(*self.val_windows) / np.count_nonzero(self.val_windows[1] >= 0)

    def request(self, config: TrainConfig) -> Request:
        """Return the request to the runtimes."""
        return to_train(config)

    def _session(self, runtime: Runtime) -> TrainingSession:
        return runtime.session(self._model, self._optimizer, self._request)

    @property
    def model(self) -> TinyGPT:
        """The model, with its arrays as they are now."""
        self.session.state()
        return self._model

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer, with its moments and averages as they are now."""
        self.session.state()
        return self._optimizer

    @property
    def used(self) -> dict[str, Any]:
        """The runtime, threads and libraries that compute the run here; checkpoints keep them."""
        return self.session.provenance()

    @property
    def change(self) -> str:
        """A line that says how `used` differs from the run before `start`; "" if it does not."""
        return difference(self._before, self.used)

    @property
    def step(self) -> int:
        """The number of updates, as the optimizer counts them: an interrupted one counts if it was applied."""
        return self._optimizer.t

    def prepare(self) -> None:
        """Do the runtime's one-time work, such as compiling, outside of any step's time.

        If it fails under auto, `choice` becomes the next runtime.
        """
        firsts = range(0, len(self.val_windows[0]), self._chunk)
        losses = sorted({self._chunk_at(first)[0].shape for first in firsts}, reverse=True)

        def ready(runtime: Runtime) -> TrainingSession:
            session = self.session if runtime is self.choice.runtime else self._session(runtime)
            session.prepare([(self.config.batch_size, self.config.length)] * self.config.grad_accum, losses)
            return session

        self.session, self.choice = self.choice.start(ready)
        self.prepared = True

    def update(self) -> Progress:
        """Make one update: the mean gradient of grad_accum micro-batches, clipped, through the optimizer.

        Raises NonFiniteError before the update if a loss or gradient is NaN or infinite.
        """
        if not self.prepared:
            self.prepare()
        config, begun = self.config, time.perf_counter()
        drawn, batches = self._next
        if drawn != self.step:
            batches = self.batches(self.step)
        lr = self._optimizer.lr = learning_rate(config.optim, self.step, config.steps)
        outcome = self.session.step(batches, config.optim.grad_clip)
        if self.step < config.steps:
            with suppress(ByhandError):  # a faulty text is reported when its step begins
                self._next = self.step, self.batches(self.step)
        loss, norm = outcome.loss, outcome.norm
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self._refuse()
        rate = config.tokens_per_step / (time.perf_counter() - begun)
        seen = self.step * config.tokens_per_step
        return Progress(self.step, config.steps, loss, lr, norm, seen, rate, bytes_per_token=self.bytes_per_token)

    def go_back(self, to: Checkpoint) -> None:
        """Become what it was at a checkpoint of this run."""
        for name, tensor in self._model.parameters().items():
            tensor.data = np.array(to.parameters[name])
        self._optimizer.t = to.step
        self._optimizer.restore({kind: dict(arrays) for kind, arrays in to.moments.items()}, to.averages)

    def end_at(self, steps: int) -> None:
        """End the run after `steps` updates; the schedule follows, and checkpoints record the change."""
        if steps != self.config.steps:
            self.record["planned"] = changed(self.record.get("planned", []), self.step, self.config.steps)
            self.config = replace(self.config, steps=steps)

    def notes_best(self, progress: Progress) -> bool:
        """Return whether this evaluation has the lowest loss so far; if so, checkpoints record it."""
        loss, before = progress.val_loss, self.record.get("best")
        if loss is None or (before and loss >= before["val/loss"]):
            return False
        self.record["best"] = {"step": progress.step, "val/loss": loss}
        return True

    def batches(self, step: int, whole: bool = False) -> list[Batch]:
        """Return the micro-batches of the update after `step` updates, each tokens and targets (rows, T).

        With several hosts, these are the rows that this process reads, or all if `whole`. Works for any step, since
        each batch has a generator seeded with its number. The next update's are `batches(trainer.step)`.
        """
        config = self.config
        rows = None if whole else self.session.rows(config.batch_size)
        numbers = range(step * config.grad_accum, (step + 1) * config.grad_accum)
        generators = (batch_generator(config.seed, number) for number in numbers)
        return [self.train.sample_batch(config.batch_size, config.length, rng, rows) for rng in generators]

    def evaluate(self) -> float:
        """Return the mean loss in nats over the fixed validation windows, with averages if the run keeps some."""
        chunk, counts = self._chunk, np.count_nonzero(self.val_windows[1] >= 0, axis=1)
        weights = {i: int(counts[i : i + chunk].sum()) for i in range(0, len(counts), chunk)}
        sums = [self._val_loss(i, self.config.optim.ema > 0) * weight for i, weight in weights.items()]
        return math.fsum(sums) / int(counts.sum())

    @property
    def _chunk(self) -> int:
        """The number of validation windows computed at once."""
        return max(1, 2048 // self.config.length)

    def _val_loss(self, first: int, average: bool) -> float:
        """Return the mean loss over a chunk of the validation windows."""
        loss = self.session.loss(*self._chunk_at(first), average=average)
        if not math.isfinite(loss):
            raise not_finite("the validation loss", self.step, self.config.optim)
        return loss

    def _chunk_at(self, first: int) -> Batch:
        """Return a chunk of the validation windows, without what follows the last target of all."""
        tokens, targets = (array[first : first + self._chunk] for array in self.val_windows)
        length = targets.shape[1]
        if self.config.model.causal:
            length = padded(int(np.nonzero(targets >= 0)[1].max(initial=0)) + 1, length)
        return tokens[:, :length], targets[:, :length]

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to resume bit for bit; of the arrays, the part that this process saves."""
        parameters, moments, averages = self.session.own()
        state = {
            "step": self.step,
            "next_batch": self.step * self.config.grad_accum,
            "random": {"generator": "PCG64 seeded with (seed, batch number)", "seed": self.config.seed},
            "schedule": {"next_lr": learning_rate(self.config.optim, self.step, self.config.steps)},
            **self.record,
            "used": self.used,
            "versions": {"python": platform.python_version(), "numpy": np.__version__},
        }
        return Checkpoint(self.config, parameters, moments, state, tokenizer=self.tokenizer, averages=averages)

    def save(self, run: Path) -> Path:
        """Write a checkpoint of this step into the run folder.

        Raises NonFiniteError, and writes nothing, if an array or the loss on the first validation windows is not
        finite: finite parameters may overflow in the forward pass, and the step's own loss was that of the
        parameters before it.
        """
        made = finite(self.checkpoint())
        self.require_finite_losses()
        return checkpoint.save(run, made, self.config.keep)

    def require_finite_losses(self) -> None:
        """Raise NonFiniteError unless the losses on the first validation windows are finite."""
        for average in {False, self.config.optim.ema > 0}:
            self._val_loss(0, average)

    def stopping(self, signal: int | None) -> int | None:
        """Return the signal that stops the run after this step, or None; `signal` came to this process."""
        return signal

    def _refuse(self) -> None:
        """Raise NonFiniteError that names the step and the first array that is not finite, found by NumPy."""
        from byhand.tracing.non_finite import first_non_finite  # few runs ever need it

        with np.errstate(all="ignore"):
            names = (first_non_finite(self.model.loss(*batch)) for batch in self.batches(self.step, whole=True))
            name = next((name for name in names if name), "the norm of the gradient")
        raise not_finite(name, self.step + 1, self.config.optim)


def changed(before: list[list[int]], step: int, steps: int) -> list[list[int]]:
    """Return a run's earlier numbers of steps, each with the step until which it held: the first and last nine."""
    if before and before[-1][0] == step:
        return before  # what was planned meanwhile was never in force
    return [*before[:1], *before[1:][-8:], [step, steps]]


def require_same_tokenizer(train: Corpus, val: Corpus, start: Checkpoint | None) -> None:
    """Raise DataError unless both parts of a text, and the run before, use one tokenizer."""
    if train.tokenizer.digest != val.tokenizer.digest:
        raise DataError(f"{train.name} and {val.name} use different tokenizers. Encode both with the same one.")
    if start and start.tokenizer.digest != train.tokenizer.digest:
        raise DataError(f"{train.name} was not encoded with the run's tokenizer. Use the checkpoint's.")


def finite(made: Checkpoint) -> Checkpoint:
    """Return the checkpoint; NonFiniteError names the first array that is not finite."""
    if name := made.first_non_finite():
        raise not_finite(f"{name}, after the update,", made.step, made.config.optim)
    return made


def not_finite(name: str, step: int, optim: OptimConfig) -> NonFiniteError:
    """Return the error for an array that is not finite, with settings that may help."""
    own = f"{optim.optimizer}_lr"
    rates = [("lr", optim.lr)] + ([(own.replace("_", "-"), getattr(optim, own))] if hasattr(optim, own) else [])
    lower = " and ".join(f"a lower --{flag} (now {rate:g}, so --{flag} {rate / 3:.1g})" for flag, rate in rates)
    clip = "" if 0 < optim.grad_clip <= 1 else " or with --grad-clip 1"
    return NonFiniteError(f"step {step}: {name} is not finite; it was not saved. Start a new run with {lower}{clip}.")
