import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import softmax, top_p
from byhand.errors import ShapeError
from equations.strategies import Case, distinct, shapes

# softmax is finite where logits are -inf; a poisoned logit takes the whole distribution with it
LAWS = {"then": softmax, "sources": False}


@st.composite
def cases(draw):
    return Case(3.0 * draw(distinct(*draw(shapes(1)))), p=draw(st.sampled_from((0.01, 0.35, 0.8, 0.999, 1.0))))


@given(cases())
def test_forward_keeps_the_fewest_that_reach_p(case):
    (logits,), p = case.inputs, case.static["p"]
    z, saved = top_p.forward(logits, p=p)
    for place in np.ndindex(logits.shape[:-1]):
        row = logits[place].tolist()
        total, reached, kept = sum(map(math.exp, row)), 0.0, set()
        for i in sorted(range(len(row)), key=lambda i: (-row[i], i)):
            if reached < p:
                kept.add(i)
            reached += math.exp(row[i]) / total
        assert z[place].tolist() == [v if i in kept else -np.inf for i, v in enumerate(row)]
    d_z = np.arange(1.0, z.size + 1).reshape(z.shape)
    np.testing.assert_array_equal(top_p.vjp(saved, d_z, p=p)[0], np.where(np.isfinite(z), d_z, 0))


def test_the_largest_always_stays():
    assert top_p.forward(np.array([1.0, 3.0, 2.0]), p=1e-9)[0].tolist() == [-np.inf, 3, -np.inf]


def test_p_of_one_keeps_all_that_have_probability():
    logits = np.array([0.0, -np.inf, 5.0, -20.0])
    assert top_p.forward(logits, p=1.0)[0].tolist() == logits.tolist()


def test_a_sum_that_reaches_p_exactly_is_enough():
    assert top_p.forward(np.zeros(4), p=0.5)[0].tolist() == [0, 0, -np.inf, -np.inf]


def test_huge_logits():
    assert top_p.forward(np.array([1e4, -1e4, 1e4]), p=0.9)[0].tolist() == [1e4, -np.inf, 1e4]


@pytest.mark.parametrize("p", [0.0, -0.5, 1.1, float("nan")])
def test_p_is_a_probability(p):
    with pytest.raises(ShapeError, match=r"p must be in \(0, 1\]"):
        top_p.forward(np.ones(3), p=p)
