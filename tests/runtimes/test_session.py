"""Sessions of every runtime: what micro-batches of any shape add up to, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byhand as bh
from byhand.config import ModelConfig, OptimConfig
from byhand.errors import ByhandError, ConfigError, DataError
from runtimes.registered import NAMES, SUITED, new_session, slow, ways
from runtimes.steps import expect_close, made

CONFIG = ModelConfig(vocab_size=11, seq_len=7, d_model=8, n_layers=1, n_heads=2)
SHAPES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, CONFIG.seq_len)), min_size=1, max_size=4)
GRADIENTS = OptimConfig(lr=0.0, beta1=0.0, beta2=0.99)
"""An optimizer whose first moments are the last step's gradients, and which moves nothing."""


def expected(batches):
    """Loss and gradients in float64: the sum over all tokens, divided by their number."""
    model = bh.TinyGPT(CONFIG, seed=1)
    exact = bh.TinyGPT(CONFIG, arrays={n: p.data.astype(np.float64) for n, p in model.parameters().items()})
    total = sum((targets >= 0).sum() for _, targets in batches)
    loss = 0.0
    for tokens, targets in batches:
        here, count = exact.loss(tokens, targets), (targets >= 0).sum()
        here.backward(np.float64(count / total))
        loss += here.item() * count / total
    return loss, {name: p.grad for name, p in exact.parameters().items()}


def hold_two(way, *steps):
    """Compare steps of these micro-batches with float64: remains of the first in memory would show in the second."""
    session = new_session(CONFIG, GRADIENTS, **way)
    hold(session, *(made(CONFIG, *shapes, seed=seed) for seed, shapes in enumerate(steps)))


def hold(session, *steps):
    for batches in steps:
        outcome = session.step(batches, 0.0)
        exact_loss, exact = expected(batches)
        assert outcome.loss == pytest.approx(exact_loss, rel=1e-5)
        assert outcome.norm == pytest.approx(np.sqrt(sum((g**2).sum() for g in exact.values())), rel=1e-4)
        for name, g in session.state().moments["m"].items():
            near = 1e-5 * max(1e-2, np.abs(exact[name]).max())
            np.testing.assert_allclose(g, exact[name], rtol=0, atol=near, err_msg=name)


WIDTHS = ([(3, 7), (3, 2)], [(1, 1), (2, 7), (1, 3)], 2)
SHARES = [
    ([(4, 7), (1, 7), (4, 7)], [(1, 7), (4, 7)], 4),  # more shares than one before has written
    ([(1, 7), (4, 7)], [(2, 3)], 3),
]


@pytest.mark.parametrize(
    ("runtime", "first", "second", "threads"),
    [(name, *WIDTHS) for name in NAMES] + [(name, *shares) for name in SUITED for shares in SHARES],
)
def test_micro_batches_are_a_mean_over_tokens(runtime, first, second, threads):
    hold_two({"runtime": runtime, "threads": threads}, first, second)


@pytest.mark.parametrize("runtime", SUITED)
@given(first=SHAPES, second=SHAPES, threads=st.integers(1, 4))
@settings(max_examples=8)
def test_micro_batches_of_any_shapes_are_a_mean_over_tokens(runtime, first, second, threads):
    hold_two({"runtime": runtime, "threads": threads}, first, second)


def masked(batches, *lengths):
    """Leave the batches' rows targets at their last positions only, each row one more than the row before."""
    rows = [np.arange(targets.shape[1])[::-1] - np.arange(len(targets))[:, None] for _, targets in batches]
    return [
        (tokens, np.where(row < n, targets, -1))
        for (tokens, targets), row, n in zip(batches, rows, lengths, strict=True)
    ]


@pytest.mark.parametrize("way", ways({}, {"threads": 3}, names=NAMES) + slow(ways({"mesh": "data=2"})))
def test_every_target_has_the_same_weight_and_a_position_without_one_none(way):
    unequal, equal = made(CONFIG, (4, 7), (2, 7)), made(CONFIG, (2, 7), (2, 7), seed=1)
    session = new_session(CONFIG, GRADIENTS, **way)
    hold(session, masked(unequal, 1, 5), masked(equal, 2, -1), masked(unequal, -3, 1))
    [batch] = masked(equal[:1], 2)
    assert session.loss(*batch) == pytest.approx(expected([batch])[0], rel=1e-5)


@pytest.mark.parametrize("way", slow(ways({"mesh": "sequence=2"}, {"mesh": "data=2,sequence=2"})))
def test_what_a_mesh_cannot_divide_counts_once(way):
    hold(new_session(CONFIG, GRADIENTS, **way), made(CONFIG, (4, 7), (2, 6), (3, 6)))


@pytest.mark.parametrize("way", ways({}, names=NAMES) + slow(ways({"mesh": "data=2"})))
def test_a_step_and_a_loss_need_a_target(way):
    session, tokens, none = new_session(CONFIG, GRADIENTS, **way), np.zeros((2, 7), int), np.full((2, 7), -1)
    early = np.where(np.arange(7) < 3, tokens, none)
    for compute in (
        lambda: session.step([(tokens, none)], 1.0),
        lambda: session.loss(tokens, none),
        lambda: session.loss(tokens, early, 4),
        lambda: session.loss(tokens, tokens, 0),
    ):
        with pytest.raises(DataError, match=r"no position of the batch has a target\."):
            compute()
    assert session.row_losses(tokens, none, tokens == 0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("cuts", [(1, 4), pytest.param((2, 4), marks=pytest.mark.slow)], ids=["unequal", "equal"])
@pytest.mark.parametrize("way", ways({}, {"threads": 3}, names=NAMES) + slow(ways({"mesh": "data=2"})))
def test_micro_batches_update_as_one_batch_of_all_rows(way, cuts):
    ((tokens, targets),) = made(CONFIG, (6, 7))
    parts = list(zip(np.split(tokens, cuts), np.split(targets, cuts), strict=True))
    sessions = [new_session(CONFIG, OptimConfig(lr=1e-2, eps=1e-3, weight_decay=0.01), **way) for _ in range(2)]
    for _ in range(3):
        outcomes = [s.step(batches, 0.1) for s, batches in zip(sessions, ([(tokens, targets)], parts), strict=True)]
        whole, cut = ((outcome.loss, outcome.norm) for outcome in outcomes)
        assert cut == pytest.approx(whole, rel=1e-6)
    expect_close(*(session.state() for session in sessions), 1e-5)


IDS = [[0, 0]]
REFUSED = {
    "tokens hold the id 11": ([[11, 0]], IDS),
    "targets hold the id -2": (IDS, [[0, -2]]),
    r"targets \(2, 6\) do not match": (np.zeros((2, 7), int), np.zeros((2, 6), int)),
    r"8 tokens, but the model's seq_len is 7\.": ([[0] * 8], [[0] * 8]),
}


@pytest.mark.parametrize("words", REFUSED)
@pytest.mark.parametrize("runtime", NAMES)
def test_what_would_read_past_the_tables_is_refused(runtime, words):
    session, batch = new_session(CONFIG, runtime=runtime), tuple(map(np.array, REFUSED[words]))
    for compute in (
        lambda: session.step([batch], 1.0),
        lambda: session.loss(*batch),
        lambda: session.loss(*batch, 3),
    ):
        with pytest.raises(ByhandError, match=words):
            compute()
    assert session.optimizer.t == 0


@pytest.mark.parametrize("runtime", NAMES)
def test_a_step_needs_a_micro_batch_and_an_optimizer(runtime):
    session = new_session(CONFIG, runtime=runtime)
    with pytest.raises(DataError, match="no micro-batch"):
        session.step([], 1.0)
    assert session.optimizer.t == 0
    session.optimizer = None
    with pytest.raises(ConfigError, match="without an optimizer"):
        session.step(made(CONFIG, (2, 7)), 1.0)
