"""The probe times real steps."""

import time

import numpy as np
import pytest

from byhand.budget.probe import LEAST_STEPS, measure, warm_up
from byhand.config import ModelConfig, TrainConfig
from byhand.data import ByteDataset
from byhand.train import Trainer

TEXT = ByteDataset(np.random.default_rng(0).integers(0, 256, 5_000).astype(np.uint8))
CONFIG = TrainConfig(model=ModelConfig(seq_len=16, d_model=16), batch_size=2, eval_windows=100, runtime="numpy")


def test_a_pause_in_one_step_and_a_slow_first_one_do_not_count(monkeypatch):
    update, calls = Trainer.update, []

    def slow(self):
        calls.append(1)
        time.sleep({1: 0.5, 3: 0.3}.get(len(calls), 0.01))
        return update(self)

    monkeypatch.setattr(Trainer, "update", slow)
    cost = measure(CONFIG, TEXT, TEXT, 0.0)
    assert len(calls) == 1 + LEAST_STEPS
    assert 0.01 <= cost.step < 0.2
    assert cost.setup >= 0.5


def test_it_takes_the_time_that_it_is_given():
    warm_up(CONFIG, TEXT, TEXT)
    begun = time.perf_counter()
    cost = measure(CONFIG, TEXT, TEXT, 0.2)
    assert time.perf_counter() - begun >= 0.2
    assert 0 < cost.step < 0.2


def test_an_evaluation_is_scaled_to_all_windows(monkeypatch):
    """Fewer windows are timed than a run evaluates."""
    seen = []

    def evaluate(self):
        seen.append(len(self.val_windows[0]))
        time.sleep(0.1)
        return 1.0

    monkeypatch.setattr(Trainer, "evaluate", evaluate)
    large = TrainConfig(model=ModelConfig(seq_len=64, d_model=16), batch_size=2, eval_windows=320, runtime="numpy")
    cost = measure(large, TEXT, TEXT, 0.0)
    assert seen == [32, 32]
    assert cost.evaluation == pytest.approx(1.0, rel=0.5)
