import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import cross_entropy
from byhand.errors import ShapeError
from equations.checks import close
from equations.strategies import Case, arrays, integers, lengths, shapes


@st.composite
def cases(draw):
    shape, vocab_size = draw(shapes(most=2)), draw(lengths)
    return Case(draw(arrays(*shape, vocab_size)), draw(integers(*shape, below=vocab_size)))


@given(cases())
def test_forward_is_the_mean_surprise(case):
    logits, targets = case.inputs
    loss, _ = cross_entropy.forward(logits, targets)
    surprises = []
    for place in np.ndindex(targets.shape):
        exponentials = [math.exp(z) for z in logits[place]]
        surprises.append(-math.log(exponentials[targets[place]] / sum(exponentials)))
    assert loss.shape == ()
    close(loss, sum(surprises) / len(surprises))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_logits_stay_finite(dtype):
    logits, targets = np.array([[1e4, -1e4], [-1e4, 1e4]], dtype), np.array([0, 0])
    loss, saved = cross_entropy.forward(logits, targets)
    assert loss == 1e4
    d_logits, _ = cross_entropy.vjp(saved, dtype(1))
    np.testing.assert_array_equal(d_logits, [[0, 0], [-0.5, 0.5]])


def test_impossible_tokens_get_no_gradient():
    loss, saved = cross_entropy.forward(np.array([[0.0, -np.inf, 0.0]]), np.array([2]))
    close(loss, math.log(2))
    close(cross_entropy.vjp(saved, 1.0)[0], [[0.5, 0, -0.5]])


@given(cases(), st.data())
def test_rows_without_a_target_are_as_if_they_were_not_there(case, data):
    logits, targets = case.inputs
    rows, flat = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    there = np.array(data.draw(st.lists(st.booleans(), min_size=flat.size, max_size=flat.size)), bool)
    found, saved = cross_entropy.forward(logits, np.where(there, flat, -1).reshape(targets.shape))
    d_found = cross_entropy.vjp(saved, 1.0)[0].reshape(rows.shape)
    assert not d_found[~there].any()
    if not there.any():
        assert found == 0
        return
    expected, kept = cross_entropy.forward(rows[there], flat[there])
    close(found, expected)
    close(d_found[there], cross_entropy.vjp(kept, 1.0)[0])


def test_wrong_targets():
    with pytest.raises(ShapeError, match=r"targets \(3,\) do not match"):
        cross_entropy.forward(np.ones((2, 4)), np.zeros(3, dtype=int))
    with pytest.raises(ShapeError, match="targets must be integers"):
        cross_entropy.forward(np.ones((2, 4)), np.zeros(2))
    with pytest.raises(ShapeError, match="no targets"):
        cross_entropy.forward(np.ones((0, 4)), np.zeros(0, dtype=int))
