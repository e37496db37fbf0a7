"""Muon, groups and averages by NumPy and by the plan: what they update, and that threads change no bit."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

import byhand as bh
from byhand.model import declared
from byhand.optim import Optimizer, averaged
from byhand.runtimes.numpy.session import NumpySession

CONFIG = bh.ModelConfig(vocab_size=11, seq_len=7, d_model=24, n_layers=2, n_heads=2)
MUON = bh.OptimConfig(
    lr=1e-2, optimizer="muon", muon_lr=0.03, embedding_lr=2e-2, head_lr=5e-3, vector_lr=4e-3, ema=0.9
)
needs_loops = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra `fast`")


def session_of(runtime, optim=MUON, threads=3, blas="auto"):
    model, optimizer = bh.TinyGPT(CONFIG, seed=2), Optimizer(optim, declared(CONFIG))
    if runtime == "numpy":
        return NumpySession(model, optimizer)
    from byhand.runtimes.loops.run.training import LoopsSession

    return LoopsSession(model, optimizer, threads, blas)


def batch(seed, rows=4):
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(0, CONFIG.vocab_size, (rows, CONFIG.seq_len)) for _ in range(2))


def copied(session):
    return [{name: np.array(array) for name, array in part.items()} for part in session.state().dictionaries()]


def test_each_parameter_is_in_its_group():
    groups = {name: parameter.group for name, parameter in declared(CONFIG).items()}
    assert {groups[n] for n in ("wte", "wpe")} == {"embeddings"}
    assert groups["lm_head.w"] == "head"
    blocks = {name: group for name, group in groups.items() if name.startswith("blocks.")}
    assert all((group == "matrices") == (".w_" in name) for name, group in blocks.items())
    assert groups["lm_head.b"] == "vectors"
    made = Optimizer(MUON, declared(CONFIG))
    rules = {n: made.rule(n, np.empty(p.shape)) for n, p in declared(CONFIG).items()}
    packed = {n: rule.static["packed"] for n, rule in rules.items() if rule.equation.name == "muon"}
    assert packed == {n: 3 if n.endswith("w_qkv") else 1 for n, group in groups.items() if group == "matrices"}
    rates = {"embeddings": 2e-2, "head": 5e-3, "matrices": 0.03, "vectors": 4e-3}
    assert {n: 1e-2 * rule.scale for n, rule in rules.items()} == pytest.approx(
        {n: rates[g] for n, g in groups.items()}
    )


def test_packed_projections_are_orthogonalised_apart():
    """With a first step, no momentum and no decay, each of q, k and v moves by a nearly orthogonal matrix."""
    session = session_of("numpy", replace(MUON, weight_decay=0.0))
    before = np.array(session.state().parameters["blocks.0.attn.w_qkv"])
    session.optimizer.lr = 1e-2
    session.step([batch(0)], 0.0)
    moved = (session.state().parameters["blocks.0.attn.w_qkv"] - before) / 0.03
    for part in np.split(moved, 3, axis=1):
        values = np.linalg.svd(part, compute_uv=False)
        assert 0.6 < values[: CONFIG.d_model // 2].min() <= values.max() < 1.25


@needs_loops
@pytest.mark.parametrize("blas", ["auto", "scipy"])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_plan_makes_the_steps_of_the_tape(threads, blas):
    plan, reference = session_of("loops", threads=threads, blas=blas), session_of("numpy")
    for step in range(4):
        for session in (plan, reference):
            session.optimizer.lr = 1e-2 * (4 - step)
        outcomes = [session.step([batch(step), batch(step + 9, 2)], 1.0) for session in (plan, reference)]
        np.testing.assert_allclose(outcomes[0], outcomes[1], rtol=1e-4)
    assert [set(part) for part in plan.state().dictionaries()] == [
        set(part) for part in reference.state().dictionaries()
    ]
    for part, other in zip(plan.state().dictionaries(), reference.state().dictionaries(), strict=True):
        for name, array in part.items():
            np.testing.assert_allclose(array, other[name], rtol=0, atol=2e-3, err_msg=name)
    tokens, targets = batch(5)
    for average in (False, True):
        losses = [session.loss(tokens, targets, average=average) for session in (plan, reference)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@needs_loops
def test_the_number_of_threads_changes_no_bit_of_an_update():
    """The same gradients in the arena; only the update is replayed."""
    found = []
    for threads in (1, 2, 3, 4):
        session = session_of("loops", threads=threads)
        session.optimizer.lr = 1e-2
        session.step([batch(0)], 1.0)
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
        from byhand.runtimes.loops.program import controls

        c[controls.CONTROLS : controls.end(threads)] = 0  # losses and squares
        c[controls.MAX_NORM] = 0
        session._replay(plan, computes=False)
        found.append(copied(session))
    for other in found[1:]:
        for part, same in zip(found[0], other, strict=True):
            for name in part:
                np.testing.assert_array_equal(part[name], same[name], err_msg=name)


@pytest.mark.parametrize("runtime", ["numpy", pytest.param("loops", marks=needs_loops)])
def test_a_step_that_is_not_finite_changes_nothing(runtime):
    session = session_of(runtime)
    session.step([batch(0)], 1.0)
    session.model.parameters()["lm_head.b"].data[3] = -np.inf
    before, (tokens, targets) = copied(session), batch(1)
    targets[0, 0] = 3
    with np.errstate(all="ignore"):
        session.step([(tokens, targets)], 1.0)
    assert session.optimizer.t == 1
    for part, same in zip(copied(session), before, strict=True):
        for name in part:
            np.testing.assert_array_equal(part[name], same[name], err_msg=name)


@pytest.mark.parametrize("runtime", ["numpy", pytest.param("loops", marks=needs_loops)])
def test_the_average_follows_its_equation(runtime):
    session = session_of(runtime, bh.OptimConfig(ema=0.5))
    expected = copied(session)[0]
    for step in range(3):
        session.optimizer.lr = 1e-2
        session.step([batch(step)], 1.0)
        theta, _, averages = session.state()
        expected = {n: averaged(a, theta[n], step + 1, 0.5) for n, a in expected.items()}
        for name, array in averages.items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-7, err_msg=name)


@needs_loops
def test_another_runtime_goes_on_with_what_one_kept():
    first, second = session_of("numpy"), session_of("loops")
    for session in (first, first):
        session.step([batch(0)], 1.0)
    second.optimizer.t = first.optimizer.t
    second.optimizer.restore(first.optimizer.moments, first.optimizer.averages)
    for name, p in second.model.parameters().items():
        p.data = first.model.parameters()[name].data
    for session in (first, second):
        session.step([batch(1)], 1.0)
    for part, other in zip(second.state().dictionaries(), first.state().dictionaries(), strict=True):
        for name, array in part.items():
            np.testing.assert_allclose(array, other[name], rtol=0, atol=1e-3, err_msg=name)
