import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import causal_softmax
from byhand.errors import ShapeError
from equations.checks import close
from equations.strategies import Case, arrays, integers, lengths, shapes


@st.composite
def plain(draw):
    return Case(draw(arrays(*draw(shapes(most=2)), draw(lengths), draw(lengths))))


@st.composite
def cached(draw):
    batch, scores = draw(lengths), draw(shapes(most=1))
    return Case(draw(arrays(batch, *scores, draw(lengths), draw(lengths))), draw(integers(batch, below=9)))


def cases():
    return st.one_of(plain(), cached())


def positions_of(case, index):
    """The position of the query at an index, and that of the key in each place: the last one that landed there."""
    (scores, start), (b, *_, t, _) = case.inputs, index
    n, places = int(start[b]) + t, scores.shape[-1]
    return n, [max((p for p in range(n + 1) if p % places == s), default=-1) for s in range(places)]


@given(cached())
def test_in_a_cache_a_query_sees_the_positions_that_are_there(case):
    scores, start = case.inputs
    weights, _ = causal_softmax.forward(scores, start)
    for index in np.ndindex(scores.shape):
        row = scores[index[:-1]]
        _, positions = positions_of(case, index)
        sums = sum(math.exp(x) for x, position in zip(row, positions, strict=True) if position >= 0)
        close(weights[index], math.exp(row[index[-1]]) / sums if positions[index[-1]] >= 0 else 0.0)


@given(plain())
def test_forward_weighs_the_keys_that_a_query_sees(case):
    (scores,) = case.inputs
    weights, _ = causal_softmax.forward(scores)
    n_queries, n_keys = scores.shape[-2:]
    for *place, t, s in np.ndindex(scores.shape):
        seen = scores[(*place, t)][: max(0, n_keys - n_queries + t + 1)]
        expected = math.exp(seen[s]) / sum(map(math.exp, seen)) if s < len(seen) else 0.0
        close(weights[(*place, t, s)], expected)
        assert s < len(seen) or weights[(*place, t, s)] == 0


def test_queries_that_see_no_key_are_zero_forward_and_backward():
    scores = np.ones((3, 2))  # three queries, and keys for the last two positions only
    weights, saved = causal_softmax.forward(scores)
    np.testing.assert_array_equal(weights, [[0, 0], [1, 0], [0.5, 0.5]])
    (d_scores,) = causal_softmax.vjp(saved, np.array([[1.0, 2.0]] * 3))
    np.testing.assert_array_equal(d_scores, [[0, 0], [0, 0], [-0.25, 0.25]])


@given(plain())
def test_masked_scores_are_never_read(case):
    (scores,) = case.inputs
    t, s = scores.shape[-2:]
    masked = np.arange(s)[None, :] > np.arange(t)[:, None] + s - t
    for junk in (np.nan, np.inf, -np.inf, 1e300):
        np.testing.assert_array_equal(
            causal_softmax.forward(np.where(masked, junk, scores))[0], causal_softmax.forward(scores)[0]
        )


def test_needs_queries_and_keys():
    with pytest.raises(ShapeError, match="must be"):
        causal_softmax.forward(np.ones(3))
