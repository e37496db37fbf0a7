"""An interrupt anywhere in a step: the weights are those before or those after it, and optimizer.t says which."""

import importlib.util

import numpy as np
import pytest

import byhand as bh

if importlib.util.find_spec("numba") is None or importlib.util.find_spec("scipy") is None:
    pytest.skip("the loops runtime needs numba and scipy (extra `fast`)", allow_module_level=True)

from byhand.runtimes.loops.lower.fusion import rules_of
from byhand.runtimes.loops.run.training import LoopsSession
from interrupts import at_every_point

CONFIG = bh.ModelConfig(vocab_size=11, seq_len=7, d_model=8, n_layers=1, n_heads=2)


def everything(model, optimizer):
    arrays = [
        *(p.data for p in model.parameters().values()),
        *optimizer.moments["m"].values(),
        *optimizer.moments["v"].values(),
    ]
    return b"".join(a.tobytes() for a in arrays)


def made(shapes):
    rng = np.random.default_rng(0)
    return [tuple(rng.integers(0, CONFIG.vocab_size, shape) for _ in range(2)) for shape in shapes]


@pytest.mark.parametrize("shapes", [[(4, 7)], [(4, 7), (1, 3)]], ids=str)
@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "steps in Python too"])
def test_the_step_happened_or_it_did_not_and_t_says_which(shapes, kernels):
    """The second shape needs fewer shares than the first, so that its update is a replay of its own."""
    rules = rules_of("train") if kernels else tuple(f for f in rules_of("train") if f.ends != "gelu")
    model, optimizer = bh.TinyGPT(CONFIG, seed=2), bh.AdamW(lr=1e-2)
    runtime, batches = LoopsSession(model, optimizer, threads=3, rules=rules), made(shapes)
    runtime.step(batches, 1.0)
    kept = {name: p.data.copy() for name, p in model.parameters().items()}
    moments = {kind: {name: a.copy() for name, a in arrays.items()} for kind, arrays in optimizer.moments.items()}
    before = everything(model, optimizer)
    expected = runtime.step(batches, 1.0)
    after, outcomes = everything(model, optimizer), []

    def restore():
        for name, p in model.parameters().items():
            p.data = kept[name].copy()
        optimizer.restore(moments, {})
        optimizer.t = 1
        runtime.arena.adopt()

    def run():
        restore()
        runtime.step(batches, 1.0)

    for point in at_every_point(run, "loops/run/training.py", "loops/run/runner.py", "loops/run/thread_team.py"):
        now = everything(model, optimizer)
        assert now == (before, after)[optimizer.t - 1], point
        outcomes.append(optimizer.t)
        restore()
        assert runtime.step(batches, 1.0) == expected, point
        assert everything(model, optimizer) == after, point
    assert len(outcomes) > 50
    assert set(outcomes) == {1, 2}


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("half", ["forward", "backward"])
def test_an_error_of_one_share_updates_nothing(failing, half):
    """A share that fails in Python while the others are on their way to the barrier."""
    rules = tuple(f for f in rules_of("train") if f.ends != "gelu")
    model, optimizer = bh.TinyGPT(CONFIG, seed=2), bh.AdamW(lr=1e-2)
    runtime, batches = LoopsSession(model, optimizer, threads=3, rules=rules), made([(4, 7)])
    runtime.step(batches)
    before = everything(model, optimizer)
    shares = runtime.plan("train", (4, 7)).shares
    share = shares[failing]
    run = share.run

    def fails(call):
        if (call.node.equation.name, call.step.targets is not None) == ("gelu", half == "backward"):
            raise MemoryError("no room for gelu")
        run(call)

    share.run = fails
    for _ in range(20):
        with pytest.raises(MemoryError):
            runtime.step(batches)
        assert everything(model, optimizer) == before
        assert optimizer.t == 1
    share.run = run
    assert np.isfinite(runtime.step(batches)).all()
    assert optimizer.t == 2
