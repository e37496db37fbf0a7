"""What is the plan's own in training: threads that share an update, and numbers too small for float32."""

import platform
from dataclasses import replace

import numpy as np
import pytest

import byhand as bh
from byhand.runtimes.loops.program import controls
from byhand.runtimes.loops.run import training
from byhand.runtimes.loops.run.training import LoopsSession
from runtimes.loops.arrays import gradients_of
from runtimes.registered import new_session
from runtimes.steps import bits, made
from runtimes.test_training import CONFIG, UPDATES


def test_the_number_of_threads_changes_no_bit_of_an_update():
    """The same gradients in the arena; only the update is replayed."""
    found = []
    for threads in (1, 2, 3, 4):
        session = new_session(CONFIG, UPDATES["muon"], runtime="loops", threads=threads)
        session.optimizer.lr = 1e-2
        session.step(made(CONFIG, (4, 8)), 1.0)
        arena, rng = session.arena, np.random.default_rng(1)
        for name, place in arena.regions.place.items():
            p = arena.parameters[name]
            shape = p.shape
            p.data[...] = rng.standard_normal(shape)
            moments = session.optimizer.moments
            moments["m"][name][...] = rng.standard_normal(shape)
            session.optimizer.averages[name][...] = 0
            if name in moments["v"]:
                moments["v"][name][...] = 1
            for share in range(threads):
                start = arena.regions.gradients + share * arena.regions.size + place
                arena.view(start, shape)[...] = 0 if share else rng.standard_normal(shape)
        plan, c = session.plan("train", (4, CONFIG.seq_len)), session.runner.controls
        c[controls.CONTROLS : controls.end(threads)] = 0  # losses and squares
        c[controls.MAX_NORM] = 0
        session._replay(plan, computes=False)
        found.append(bits(session))
    assert found == found[:1] * 4


WIDE = bh.ModelConfig(vocab_size=23, seq_len=16, d_model=16, n_layers=2, n_heads=2)


def test_probabilities_too_small_for_float32_cost_nothing():
    """Denormal numbers are many times slower; the caller's own arithmetic keeps them."""
    tiny = np.full(4, 1e-30, np.float32)
    model = bh.TinyGPT(WIDE, seed=5)
    bias = model.parameters()["lm_head.b"].data
    bias[12:] = np.linspace(-80, -100, 11)
    runtime = LoopsSession(model, bh.AdamW(), threads=2)
    rng = np.random.default_rng(0)
    tokens, targets = (rng.integers(0, 12, (4, 16)) for _ in range(2))
    runtime.step([(tokens, targets)])
    small = np.finfo(np.float32).smallest_normal
    head = gradients_of(runtime)["lm_head.w"]
    assert not ((head != 0) & (np.abs(head) < small)).any()
    assert (head[:, 12:] == 0).any()
    if platform.machine().lower() in ("x86_64", "amd64"):
        assert (tiny * np.float32(1e-10) > 0).all(), "the thread's mode was not restored"


@pytest.mark.parametrize("blas", ["tiles", "scipy"])
def test_the_library_uses_several_threads_for_a_single_share_only(blas, monkeypatch):
    """Shares that call it at once would wait for its one pool of threads, as would more threads than cores."""
    monkeypatch.setattr(training, "cores", lambda: 3)
    asked, session = [], LoopsSession(bh.TinyGPT(WIDE, seed=5), bh.AdamW(), threads=4, blas=blas)
    session.blas = replace(session.blas, set_threads=asked.append)
    two, one = ((np.zeros((rows, 16), np.int64),) * 2 for rows in (2, 1))
    for batches, expected in (([two], [1]), ([one], [3]), ([one], [3]), ([two, one], [1, 3, 1])):
        session.step(batches)
        assert asked == expected  # the last micro-batch may have fewer shares than the update
        asked.clear()
    kernels = {call.kernel for call in session.plan("train", (2, 16)).calls}
    assert ("gemm" in kernels) == (blas == "scipy")
