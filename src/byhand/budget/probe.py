"""The probe: a few steps and an evaluation of a run, timed on this machine with its runtime."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace

from byhand.config import TrainConfig
from byhand.corpus.dataset import Corpus
from byhand.runs.trainer import Trainer

LEAST_STEPS = 4
SAMPLE = 2048  # tokens of the timed evaluation; its time is scaled to a whole one


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
    windows = max(1, min(config.eval_windows, SAMPLE // config.model.seq_len))
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
    taken, _ = val.spread_windows(config.eval_windows, config.model.seq_len)
    evaluation = (time.perf_counter() - before) * len(taken) / len(trainer.val_windows[0])
    return Cost(statistics.median(steps), evaluation, ready - begun)
