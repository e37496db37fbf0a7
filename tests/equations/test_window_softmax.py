import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations.causal_softmax import causal_softmax
from byhand.equations.softmax import softmax
from byhand.equations.window_softmax import window_softmax
from byhand.errors import ShapeError
from equations import test_causal_softmax as causal_cases
from equations.checks import close, same, wrong_numbers
from equations.strategies import Case, arrays, lengths, shapes


@st.composite
def plain(draw):
    scores = draw(arrays(*draw(shapes(most=2)), draw(lengths), draw(st.integers(1, 6))))
    return Case(scores, window=draw(st.integers(1, 5)))


@st.composite
def cached(draw):
    case = draw(causal_cases.cached())
    return Case(*case.inputs, window=draw(st.integers(1, 5)))


def cases():
    return st.one_of(plain(), cached())


@given(cached())
def test_in_a_cache_a_query_sees_the_last_positions(case):
    (scores, start), window = case.inputs, case.static["window"]
    weights, _ = window_softmax.forward(scores, start, window=window)
    for index in np.ndindex(scores.shape):
        row = scores[index[:-1]]
        n, positions = causal_cases.positions_of(case, index)
        seen = [position >= 0 and n - position < window for position in positions]
        sums = sum(math.exp(x) for x, sees in zip(row, seen, strict=True) if sees)
        close(weights[index], math.exp(row[index[-1]]) / sums if seen[index[-1]] else 0.0)


def seen_by(t, scores, window):
    """The keys that a query sees, counted one by one."""
    newest = t + scores.shape[-1] - scores.shape[-2]
    return [s for s in range(scores.shape[-1]) if 0 <= newest - s < window]


@given(plain())
def test_forward_weighs_the_keys_in_the_window(case):
    (scores,), window = case.inputs, case.static["window"]
    weights, _ = window_softmax.forward(scores, window=window)
    for *place, t, s in np.ndindex(scores.shape):
        row, seen = scores[(*place, t)], seen_by(t, scores, window)
        expected = math.exp(row[s]) / sum(math.exp(row[j]) for j in seen) if s in seen else 0.0
        close(weights[(*place, t, s)], expected)
        assert s in seen or weights[(*place, t, s)] == 0


@given(plain())
def test_gradient_terms_are_the_derivative(case):
    weights, saved = window_softmax.forward(*case.inputs, **case.static)
    d = np.cos(np.arange(weights.size)).reshape(weights.shape)
    (d_scores,) = window_softmax.vjp(saved, d, **case.static)
    for index in np.ndindex(weights.shape):
        close(window_softmax.gradient_terms(saved, (d,), 0, index, **case.static).value, d_scores[index])


@given(plain())
def test_a_window_of_all_keys_is_the_causal_softmax(case):
    (scores,) = case.inputs
    window = scores.shape[-1]
    same(window_softmax.forward(scores, window=window)[:1], causal_softmax.forward(scores)[:1])
    assert window_softmax.flops(scores.shape, window=window) == causal_softmax.flops(scores.shape)


@given(plain())
def test_a_window_of_one_copies_the_own_value(case):
    """All weight is on the key at the query's own position; whatever its score, no gradient comes back."""
    (scores,) = case.inputs
    queries, keys = scores.shape[-2:]
    weights, saved = window_softmax.forward(scores, window=1)
    own = np.eye(queries, keys, keys - queries)
    np.testing.assert_array_equal(weights, np.broadcast_to(own, scores.shape))
    assert not np.any(window_softmax.vjp(saved, np.cos(scores), window=1)[0])


@given(plain())
def test_masked_scores_are_never_read(case):
    (scores,), window = case.inputs, case.static["window"]
    masked = np.ones(scores.shape[-2:], dtype=bool)
    for t in range(scores.shape[-2]):
        masked[t, seen_by(t, scores, window)] = False
    for junk in (np.nan, np.inf, -np.inf, 1e300):
        np.testing.assert_array_equal(
            window_softmax.forward(np.where(masked, junk, scores), window=window)[0],
            window_softmax.forward(scores, window=window)[0],
        )


def test_keys_that_left_the_window_may_be_dropped():
    """What a cache that slides relies on: the last W keys alone give the last query the same weights."""
    scores = np.sin(np.arange(7.0))[None, :]
    whole, _ = window_softmax.forward(scores, window=3)
    last, _ = window_softmax.forward(scores[:, -3:], window=3)
    same((last,), (whole[:, -3:],))


def test_operations_are_those_of_the_visible_keys():
    visible = sum(len(seen_by(t, np.ones((4, 6)), 3)) for t in range(4))
    assert window_softmax.flops((2, 4, 6), window=3) == softmax.flops((2, visible))


def test_needs_queries_and_keys():
    with pytest.raises(ShapeError, match="must be"):
        window_softmax.forward(np.ones(3), window=2)


def test_typical_mistakes():
    scores = np.log([[1.0, 2.0, 5.0]] * 3)
    case = Case(scores, window=2)
    more = "saw one key too many: W earlier ones besides its own"
    forgot = "forgot the window: only later keys were masked"
    after = "masked after the softmax, so the row no longer sums to 1"
    assert wrong_numbers(window_softmax, case, (2, 1)) == pytest.approx({more: 2 / 8, forgot: 2 / 8, after: 2 / 8})
    assert wrong_numbers(window_softmax, case, (2, 0)) == pytest.approx({more: 1 / 8, forgot: 1 / 8, after: 0})
    one = Case(scores, window=1)
    assert wrong_numbers(window_softmax, one, (2, 2)) == pytest.approx({more: 5 / 7, forgot: 5 / 8, after: 5 / 8})
    (own,) = wrong_numbers(window_softmax, case, (2, 1), np.array([[0.0, 7.0, 0.0]] * 3)).values()
    assert own == pytest.approx(2 / 7 * 5 / 7 * 7)


def witnesses(torch):
    """What PyTorch computes with a mask of a band."""
    scores = np.random.default_rng(7).standard_normal((2, 5, 5))

    def banded(scores):
        ones = torch.ones(5, 5, dtype=torch.bool)
        return torch.softmax(scores.masked_fill(~(torch.tril(ones) & torch.triu(ones, -2)), -torch.inf), dim=-1)

    return [(banded, (scores,), {"window": 3})]
