"""Sessions of every runtime: what micro-batches of any shape add up to, and when a step must change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byhand as bh
from byhand.errors import DataError, ShapeError
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import runtimes
from runtimes.registered import NAMES, session_of

CONFIG = bh.ModelConfig(vocab_size=11, seq_len=7, d_model=8, n_layers=1, n_heads=2)
SUITED = [each.name for each in runtimes() if each.suits(Request("train", CONFIG))]
SHAPES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, CONFIG.seq_len)), min_size=1, max_size=4)


def adamw(**settings):
    """An optimizer whose first moments are the last step's gradients."""
    return bh.AdamW(betas=(0.0, 0.99), **settings)


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


def hold(session, shapes, seed=0):
    """Make a step of these micro-batches and hold it against float64; the learning rate is 0."""
    batches = made(shapes, seed)
    outcome = session.step(batches, 0.0)
    exact_loss, exact = expected(batches)
    assert outcome.loss == pytest.approx(exact_loss, rel=1e-5)
    assert outcome.norm == pytest.approx(np.sqrt(sum((g**2).sum() for g in exact.values())), rel=1e-4)
    for name, g in session.state().moments["m"].items():
        np.testing.assert_allclose(
            g, exact[name], rtol=0, atol=1e-5 * max(1e-2, np.abs(exact[name]).max()), err_msg=name
        )


def hold_two(runtime, first, second, threads):
    """Hold two steps, so that what the first left in memory would show in the second."""
    session = session_of(bh.TinyGPT(CONFIG, seed=2), adamw(lr=0.0), runtime, threads)
    hold(session, first, seed=1)
    hold(session, second, seed=2)


@pytest.mark.parametrize("runtime", NAMES)
@pytest.mark.parametrize(
    ("first", "second", "threads"),
    [
        ([(4, 7), (1, 7)], [(1, 7), (4, 7)], 4),
        ([(1, 7), (4, 7)], [(2, 3)], 3),
        ([(3, 7), (3, 2)], [(1, 1), (2, 7), (1, 3)], 2),
    ],
)
def test_micro_batches_are_a_mean_over_tokens(runtime, first, second, threads):
    hold_two(runtime, first, second, threads)


@pytest.mark.parametrize("runtime", SUITED)
@given(first=SHAPES, second=SHAPES, threads=st.integers(1, 4))
@settings(max_examples=15)
def test_micro_batches_of_any_shapes_are_a_mean_over_tokens(runtime, first, second, threads):
    """Under the runtimes that auto thinks of here: another compiles each shape for seconds."""
    hold_two(runtime, first, second, threads)


@pytest.mark.parametrize("runtime", NAMES)
def test_unequal_micro_batches_update_as_one_batch_of_all_rows(runtime):
    (whole,) = made([(5, 7)])
    parts = [(whole[0][a:b], whole[1][a:b]) for a, b in ((0, 1), (1, 4), (4, 5))]
    together, apart = (bh.TinyGPT(CONFIG, seed=2) for _ in range(2))
    for model, batches in ((together, [whole]), (apart, parts)):
        session = session_of(model, bh.AdamW(lr=1e-2, eps=1e-3), runtime, threads=3)
        for _ in range(3):
            session.step(batches, 0.5)
        session.state()
    for name, p in together.parameters().items():
        np.testing.assert_allclose(apart.parameters()[name].data, p.data, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("runtime", NAMES)
def test_a_step_of_no_micro_batches_is_refused(runtime):
    optimizer = bh.AdamW()
    with pytest.raises(DataError, match="no micro-batch"):
        session_of(bh.TinyGPT(CONFIG), optimizer, runtime).step([], 1.0)
    assert optimizer.t == 0


@pytest.mark.parametrize("runtime", NAMES)
def test_targets_of_another_shape_than_the_tokens_are_refused(runtime):
    session = session_of(bh.TinyGPT(CONFIG), bh.AdamW(), runtime)
    tokens, targets = np.zeros((2, 7), int), np.zeros((2, 6), int)
    for compute in (lambda: session.step([(tokens, targets)], 1.0), lambda: session.loss(tokens, targets, 3)):
        with pytest.raises(ShapeError, match=r"targets \(2, 6\) do not match tokens \(2, 7\)"):
            compute()


def state(session, model, optimizer):
    session.state()  # which leaves the arrays there
    arrays = {name: p.data for name, p in model.parameters().items()}
    arrays |= {f"m.{n}": a for n, a in optimizer.moments["m"].items()} | {
        f"v.{n}": a for n, a in optimizer.moments["v"].items()
    }
    return optimizer.t, {name: a.copy() for name, a in arrays.items()}


@pytest.mark.parametrize("runtime", NAMES)
@pytest.mark.parametrize("max_norm", [0.0, 1.0])
def test_a_loss_that_is_not_finite_beside_a_finite_norm_updates_nothing(runtime, max_norm):
    """The bias of one id is -inf: where it is the target, in whichever row, only the loss is infinite."""
    model, optimizer = bh.TinyGPT(CONFIG, seed=2), bh.AdamW(lr=0.1)
    session = session_of(model, optimizer, runtime, threads=4)
    rng = np.random.default_rng(0)
    tokens, targets = rng.integers(0, 10, (2, 4, 7))
    for row in range(4):
        outcome = session.step([(tokens, targets)], max_norm)
        assert np.isfinite([outcome.loss, outcome.norm]).all()
        session.state()
        biased(model, -np.inf)
        endless = targets.copy()
        endless[row, 3] = 10
        before = state(session, model, optimizer)
        with np.errstate(all="ignore"):
            assert not np.isfinite(session.step([(tokens, endless)], max_norm).loss)
        t, arrays = state(session, model, optimizer)
        assert t == before[0] == row + 1
        for name, a in arrays.items():
            np.testing.assert_array_equal(a, before[1][name], err_msg=name)
        biased(model, 0.0)  # and the next step is a step again


def test_the_case_before_has_a_finite_norm():
    """Under the loops; else it would say nothing about looking at the loss."""
    model = bh.TinyGPT(CONFIG, seed=2)
    biased(model, -np.inf)
    outcome = session_of(model, bh.AdamW(lr=0.1), "loops", 3).step([(np.full((4, 7), 3), np.full((4, 7), 10))], 1.0)
    assert not np.isfinite(outcome.loss)
    assert np.isfinite(outcome.norm)


def biased(model, number):
    """Give the head another bias of the id 10."""
    bias = model.parameters()["lm_head.b"]
    bias.data = np.where(np.arange(11) == 10, np.float32(number), bias.data)
