"""The probe times real steps."""

import numpy as np
import pytest

from byhand.budget.probe import LEAST_STEPS, measure, warm_up
from byhand.config import ModelConfig, TrainConfig
from byhand.corpus.dataset import ByteDataset
from byhand.runs.trainer import Trainer

TEXT = ByteDataset(np.random.default_rng(0).integers(0, 256, 5_000).astype(np.uint8))
CONFIG = TrainConfig(model=ModelConfig(seq_len=16, d_model=16), batch_size=2, eval_windows=100, runtime="numpy")


class Clock:
    """Time that passes only where a test says so."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("byhand.budget.probe.time", self)

    def perf_counter(self):
        return self.now

    def slow(self, monkeypatch, name, *seconds):
        """Let the calls of a trainer's method take these seconds, the last of them from then on; return the calls."""
        method, calls = getattr(Trainer, name), []

        def timed(trainer):
            self.now += seconds[min(len(calls), len(seconds) - 1)]
            calls.append(len(trainer.val_windows[0]))
            return method(trainer)

        monkeypatch.setattr(Trainer, name, timed)
        return calls


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_a_pause_in_one_step_and_a_slow_first_one_do_not_count(monkeypatch, clock):
    calls = clock.slow(monkeypatch, "update", 0.5, 0.01, 0.3, 0.01)
    cost = measure(CONFIG, TEXT, TEXT, 0.0)
    assert len(calls) == 1 + LEAST_STEPS
    assert cost.step == pytest.approx(0.01)
    assert cost.setup == pytest.approx(0.5)


def test_it_takes_the_time_that_it_is_given(monkeypatch, clock):
    calls = clock.slow(monkeypatch, "update", 0.25)
    warm_up(CONFIG, TEXT, TEXT)
    assert len(calls) == 1
    assert measure(CONFIG, TEXT, TEXT, 2.5).step == 0.25
    assert clock.now == 0.25 + 0.25 + 2.5


def test_an_evaluation_is_scaled_to_all_windows(monkeypatch, clock):
    """Fewer windows are timed than a run evaluates."""
    seen = clock.slow(monkeypatch, "evaluate", 0.7, 0.125)
    large = TrainConfig(model=ModelConfig(seq_len=64, d_model=16), batch_size=2, eval_windows=320, runtime="numpy")
    val = ByteDataset(np.zeros(320 * 64 + 1, np.uint8))
    assert measure(large, TEXT, val, 0.0).evaluation == 1.25
    assert seen == [32, 32]


def test_an_evaluation_is_scaled_to_the_windows_of_a_short_text(monkeypatch, clock):
    clock.slow(monkeypatch, "evaluate", 0.7, 0.125)
    large = TrainConfig(model=ModelConfig(seq_len=64, d_model=16), batch_size=2, eval_windows=320, runtime="numpy")
    assert measure(large, TEXT, ByteDataset(np.zeros(40 * 64 + 1, np.uint8)), 0.0).evaluation == 0.125 * 40 / 32
