"""The probe: a few steps and an evaluation of a run, or of a shallow model like its own, timed on this machine."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace

import numpy as np

from byhand.config import TrainConfig
from byhand.corpus.dataset import Corpus
from byhand.model import TinyGPT, declared
from byhand.optim import Optimizer
from byhand.runs.trainer import Trainer
from byhand.runtimes.cores import cores
from byhand.runtimes.protocol import Runtime, TrainingSession, to_train
from byhand.runtimes.registry import begin

LEAST_STEPS = 4
SAMPLE = 2048  # tokens of the timed evaluation, or step; its time is scaled to a whole one
NARROW = 256  # tokens of a vocabulary whose embeddings and head take negligible time beside the blocks
ENOUGH = 1.0  # seconds of timed steps


@dataclass(frozen=True)
class Cost:
    """Seconds of a step, of an evaluation on all windows, and of setting a run up."""

    step: float
    evaluation: float
    setup: float


def warm_up(config: TrainConfig, train: Corpus, val: Corpus) -> None:
    """Make one update, so that the runtime has compiled and loaded everything."""
    Trainer(replace(config, eval_windows=1), train, val).update()


def measure(config: TrainConfig, train: Corpus, val: Corpus, seconds: float) -> Cost:
    """Return the cost of a run here, from as many steps as fit into these seconds, at least a few.

    The first step counts as set-up; warm a compiling runtime up before. Medians limit a pause to one step.
    """
    windows = max(1, min(config.eval_windows, SAMPLE // config.length))
    begun = time.perf_counter()
    trainer = Trainer(replace(config, eval_windows=windows), train, val)
    trainer.update()
    ready = time.perf_counter()
    steps: list[float] = []
    while len(steps) < LEAST_STEPS or time.perf_counter() - ready < seconds:
        before = time.perf_counter()
        trainer.update()
        steps.append(time.perf_counter() - before)
    trainer.evaluate()  # the first one sets up too
    before = time.perf_counter()
    trainer.evaluate()
    taken, _ = val.spread_windows(config.eval_windows, config.length)
    evaluation = (time.perf_counter() - before) * len(taken) / len(trainer.val_windows[0])
    return Cost(statistics.median(steps), evaluation, ready - begun)


def step_seconds(config: TrainConfig) -> float:
    """Estimate the seconds of an update here, in proportion, from a few windows.

    A deep model's blocks are alike: we time two of them, and each further one counts as the second. We time a large
    vocabulary apart.
    """
    model, rows = config.model, min(config.batch_size, max(cores(), SAMPLE // config.length))
    unit, narrow = len(model.layer_pattern) or 1, min(NARROW, model.vocab_size)
    whole = config.batch_size * config.grad_accum / rows
    if 2 * unit >= model.n_layers:
        return whole * _timed(config, model.n_layers, model.vocab_size, rows)
    first, second = (_timed(config, layers, narrow, rows) for layers in (unit, 2 * unit))
    vocabulary = _timed(config, unit, model.vocab_size, rows) - first if narrow < model.vocab_size else 0.0
    return whole * (first + vocabulary + (model.n_layers / unit - 1) * max(0.0, second - first))


def _timed(config: TrainConfig, layers: int, vocab_size: int, rows: int) -> float:
    """Return the median time of a step of a model like the run's on so many windows."""
    shape, model = (rows, config.length), replace(config.model, n_layers=layers, vocab_size=vocab_size)
    made, optimizer = TinyGPT(model, 1, config.array_dtype), Optimizer(config.optim, declared(model))
    request = to_train(replace(config, model=model))

    def ready(runtime: Runtime) -> TrainingSession:
        session = runtime.session(made, optimizer, request)
        session.prepare([shape], [])
        return session

    session, times = begin(request, ready)[0], list[float]()
    ids = np.random.default_rng(0).integers(0, vocab_size, (2, *shape))
    while len(times) < 2 or (sum(times[1:]) < ENOUGH and len(times) < 10):
        begun = time.perf_counter()
        _ = session.step([(ids[0], ids[1])], config.optim.grad_clip).loss  # waits for the device
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])  # the first one meets cold memory
