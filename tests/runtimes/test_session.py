"""Sessions of both runtimes: what micro-batches of any shape add up to, and when a step must change nothing."""

import importlib.util

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import byhand as bh
from byhand.errors import DataError, ShapeError
from byhand.runtimes.tape.session import TapeSession
from runtimes.loops.arrays import gradients_of

CONFIG = bh.ModelConfig(vocab_size=11, seq_len=7, d_model=8, n_layers=1, n_heads=2)
LOOPS = importlib.util.find_spec("numba") is not None and importlib.util.find_spec("scipy") is not None
RUNTIMES = ["numpy", pytest.param("loops", marks=pytest.mark.skipif(not LOOPS, reason="needs the extra `fast`"))]
SHAPES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, CONFIG.seq_len)), min_size=1, max_size=4)


def session_of(runtime, model, optimizer, threads=3):
    if runtime == "numpy":
        return TapeSession(model, optimizer)
    from byhand.runtimes.loops.run.training import LoopsSession

    return LoopsSession(model, optimizer, threads)


def gradients(runtime, session):
    if runtime == "loops":
        return gradients_of(session)
    return {name: p.grad for name, p in session.model.parameters().items()}


def made(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [tuple(rng.integers(0, CONFIG.vocab_size, shape) for _ in range(2)) for shape in shapes]


def expected(batches):
    """Loss and gradients in float64: the sum over all tokens, divided by their number."""
    model = bh.TinyGPT(CONFIG, seed=2)
    exact = bh.TinyGPT(CONFIG, arrays={n: p.data.astype(np.float64) for n, p in model.parameters().items()})
    total = sum(tokens.size for tokens, _ in batches)
    loss = 0.0
    for tokens, targets in batches:
        here = exact.loss(tokens, targets)
        here.backward(np.float64(tokens.size / total))
        loss += here.item() * tokens.size / total
    return loss, {name: p.grad for name, p in exact.parameters().items()}


def hold(runtime, session, shapes, seed=0):
    """Make a step of these micro-batches and hold it against float64; the learning rate is 0."""
    batches = made(shapes, seed)
    loss, norm = session.step(batches, 0.0)
    exact_loss, exact = expected(batches)
    assert loss == pytest.approx(exact_loss, rel=1e-5)
    assert norm == pytest.approx(np.sqrt(sum((g**2).sum() for g in exact.values())), rel=1e-4)
    for name, g in gradients(runtime, session).items():
        np.testing.assert_allclose(
            g, exact[name], rtol=0, atol=1e-5 * max(1e-2, np.abs(exact[name]).max()), err_msg=name
        )


@pytest.mark.parametrize("runtime", RUNTIMES)
@given(first=SHAPES, second=SHAPES, threads=st.integers(1, 4))
@example(first=[(4, 7), (1, 7)], second=[(1, 7), (4, 7)], threads=4)
@example(first=[(1, 7), (4, 7)], second=[(2, 3)], threads=3)
@example(first=[(3, 7), (3, 2)], second=[(1, 1), (2, 7), (1, 3)], threads=2)
@settings(max_examples=15)
def test_micro_batches_of_any_shapes_are_a_mean_over_tokens(runtime, first, second, threads):
    """Two steps, so that what the first left in memory would show in the second."""
    session = session_of(runtime, bh.TinyGPT(CONFIG, seed=2), bh.AdamW(lr=0.0), threads)
    hold(runtime, session, first, seed=1)
    hold(runtime, session, second, seed=2)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_unequal_micro_batches_update_as_one_batch_of_all_rows(runtime):
    (whole,) = made([(5, 7)])
    parts = [(whole[0][a:b], whole[1][a:b]) for a, b in ((0, 1), (1, 4), (4, 5))]
    together, apart = (bh.TinyGPT(CONFIG, seed=2) for _ in range(2))
    for model, batches in ((together, [whole]), (apart, parts)):
        session = session_of(runtime, model, bh.AdamW(lr=1e-2, eps=1e-3))
        for _ in range(3):
            session.step(batches, 0.5)
    for name, p in together.parameters().items():
        np.testing.assert_allclose(apart.parameters()[name].data, p.data, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_step_of_no_micro_batches_is_refused(runtime):
    optimizer = bh.AdamW()
    with pytest.raises(DataError, match="no micro-batch"):
        session_of(runtime, bh.TinyGPT(CONFIG), optimizer).step([], 1.0)
    assert optimizer.t == 0


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_targets_of_another_shape_than_the_tokens_are_refused(runtime):
    session = session_of(runtime, bh.TinyGPT(CONFIG), bh.AdamW())
    tokens, targets = np.zeros((2, 7), int), np.zeros((2, 6), int)
    for compute in (lambda: session.step([(tokens, targets)], 1.0), lambda: session.loss(tokens, targets, 3)):
        with pytest.raises(ShapeError, match=r"targets \(2, 6\) do not match tokens \(2, 7\)"):
            compute()


def state(model, optimizer):
    arrays = {name: p.data for name, p in model.parameters().items()}
    arrays |= {f"m.{n}": a for n, a in optimizer.m.items()} | {f"v.{n}": a for n, a in optimizer.v.items()}
    return optimizer.t, {name: a.copy() for name, a in arrays.items()}


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("max_norm", [0.0, 1.0])
def test_a_loss_that_is_not_finite_beside_a_finite_norm_updates_nothing(runtime, row, max_norm):
    """The bias of one id is -inf: where it is the target the loss is infinite, but every gradient is finite."""
    model, optimizer = bh.TinyGPT(CONFIG, seed=2), bh.AdamW(lr=0.1)
    session = session_of(runtime, model, optimizer, threads=4)
    rng = np.random.default_rng(0)
    tokens, targets = rng.integers(0, 10, (2, 4, 7))
    assert np.isfinite(session.step([(tokens, targets)], max_norm)).all()
    model.parameters()["lm_head.b"].data[10] = -np.inf
    targets[row, 3] = 10
    before = state(model, optimizer)
    with np.errstate(all="ignore"):
        loss, _ = session.step([(tokens, targets)], max_norm)
    assert not np.isfinite(loss)
    t, arrays = state(model, optimizer)
    assert t == before[0] == 1
    for name, a in arrays.items():
        np.testing.assert_array_equal(a, before[1][name], err_msg=name)
    targets[row, 3] = 1  # and the next step is a step again
    model.parameters()["lm_head.b"].data[10] = 0
    assert np.isfinite(session.step([(tokens, targets)], max_norm)).all()
    assert optimizer.t == 2


@pytest.mark.skipif(not LOOPS, reason="needs the extra `fast`")
def test_the_case_before_has_a_finite_norm():
    """Else it would say nothing about looking at the loss."""
    model = bh.TinyGPT(CONFIG, seed=2)
    model.parameters()["lm_head.b"].data[10] = -np.inf
    loss, norm = session_of("loops", model, bh.AdamW(lr=0.1)).step([(np.full((4, 7), 3), np.full((4, 7), 10))])
    assert not np.isfinite(loss)
    assert np.isfinite(norm)
