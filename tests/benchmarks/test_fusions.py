"""`benchmarks/fusions.py`: each variant of a step computes the same, and the table has every fusion."""

import importlib.util

import pytest

if importlib.util.find_spec("numba") is None or importlib.util.find_spec("scipy") is None:
    pytest.skip("the loops runtime needs numba and scipy (extra `fast`)", allow_module_level=True)

import fusions
import numpy as np

from byhand.bench.shapes import shape_of
from byhand.runtimes.loops.lower.fusion import rules_of, without

SMALL = shape_of("4,8,12,2,3,17")


@pytest.mark.parametrize("threads", [1, 3])
def test_the_update_in_separate_passes_updates_the_same(threads):
    whole, apart = (fusions.TimedPlan(SMALL, threads, "auto") for _ in range(2))
    apart.split_update()
    assert len(apart.plan.calls) > len(whole.plan.calls)
    for _ in range(3):
        assert apart() == pytest.approx(whole(), rel=1e-6)
    for name, p in whole.session.model.parameters().items():
        np.testing.assert_allclose(apart.session.model.parameters()[name].data, p.data, atol=1e-6)


def test_what_stands_in_for_a_rule():
    assert fusions.TimedPlan(SMALL, 1, "auto", rules=without("attention")).instead == "NumPy halves"
    assert fusions.TimedPlan(SMALL, 1, "auto", rules=without("linear + gelu")).instead == "kernels"


def test_probabilities_kept_take_memory():
    wide = shape_of("4,8,12,2,3,1024")
    kept = fusions.TimedPlan(wide, 1, "auto", rules=without("cross-entropy with its derivative"))
    assert kept.megabytes > fusions.TimedPlan(wide, 1, "auto").megabytes


def test_some_rows_logits_at_a_time_take_less_memory():
    wide = shape_of("2,300,12,1,3,4096")
    whole = fusions.TimedPlan(wide, 1, "auto", rules=without("LM head + cross-entropy"))
    chunked = fusions.TimedPlan(wide, 1, "auto")
    assert chunked() == pytest.approx(whole(), rel=1e-6)
    assert whole.megabytes - chunked.megabytes > 4e-6 * 4096 * (600 - 256) * 0.9


def test_the_ratio_is_of_the_same_round(monkeypatch):
    """A machine that slows down by half from round to round: the medians over all would say nothing of the rule."""

    def timed(steps, seconds):
        autotuner = [2.0**i for i in range(fusions.ROUNDS)]
        return {name: [p * (3 if name == "attention" else 2) for p in autotuner for _ in range(2)] for name in steps}

    monkeypatch.setattr(fusions, "timed", timed)
    gains = {g.rule: g.ratio for g in fusions.measure(SMALL, threads=1)}
    rules = [f.name for f in rules_of("train") if f.reason and "low_rank" not in f.name]  # of adapters: none here
    rules.remove("LM head + cross-entropy")  # of large vocabularies
    assert list(gains) == [*rules, fusions.UPDATE]
    assert gains.pop("attention") == 1.5
    assert set(gains.values()) == {1.0}
