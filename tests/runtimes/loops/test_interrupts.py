"""An interrupt anywhere in a step: the weights are those before or those after it, and optimizer.t says which."""

import numpy as np
import pytest

import byhand as bh
from byhand.runtimes.loops.lower.fusion import rules_of
from byhand.runtimes.loops.run.training import LoopsSession
from interrupts import at_every_point
from runtimes.steps import bits, copied, made, put

CONFIG = bh.ModelConfig(vocab_size=11, seq_len=7, d_model=8, n_layers=1, n_heads=2)


@pytest.mark.parametrize("shapes", [[(4, 7)], [(4, 7), (1, 3)]], ids=str)
def test_a_step_with_steps_in_python_happened_or_it_did_not(shapes):
    """The second shape needs fewer shares than the first, so that its update is a replay of its own."""
    rules = tuple(f for f in rules_of("train") if f.ends != "gelu")
    optimizer = bh.AdamW(lr=1e-2)
    runtime, batches = (
        LoopsSession(bh.TinyGPT(CONFIG, seed=2), optimizer, threads=3, rules=rules),
        made(CONFIG, *shapes),
    )
    runtime.step(batches, 1.0)
    kept, before = copied(runtime), bits(runtime)
    expected = runtime.step(batches, 1.0)
    after, outcomes = bits(runtime), []

    def restore():
        put(runtime, kept, 1)
        runtime.arena.adopt()

    def run():
        restore()
        runtime.step(batches, 1.0)

    for point in at_every_point(run, "loops/run/training.py", "loops/run/runner.py", "loops/run/thread_team.py"):
        now = bits(runtime)
        assert now == (before, after)[optimizer.t - 1], point
        outcomes.append(optimizer.t)
        restore()
        assert runtime.step(batches, 1.0) == expected, point
        assert bits(runtime) == after, point
    assert len(outcomes) > 50
    assert set(outcomes) == {1, 2}


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("half", ["forward", "backward"])
def test_an_error_of_one_share_updates_nothing(failing, half):
    """A share that fails in Python while the others are on their way to the barrier."""
    rules = tuple(f for f in rules_of("train") if f.ends != "gelu")
    optimizer = bh.AdamW(lr=1e-2)
    runtime, batches = (
        LoopsSession(bh.TinyGPT(CONFIG, seed=2), optimizer, threads=3, rules=rules),
        made(CONFIG, (4, 7)),
    )
    runtime.step(batches)
    before = bits(runtime)
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
        assert bits(runtime) == before
        assert optimizer.t == 1
    share.run = run
    assert np.isfinite(runtime.step(batches)).all()
    assert optimizer.t == 2
