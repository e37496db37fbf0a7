import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import min_p, softmax
from byhand.errors import ShapeError
from equations.strategies import Case, distinct, shapes

# softmax is finite where logits are -inf; a poisoned logit takes the whole distribution with it
LAWS = {"then": softmax, "sources": False}


@st.composite
def cases(draw):
    return Case(3.0 * draw(distinct(*draw(shapes(1)))), p=draw(st.sampled_from((0.0, 0.03, 0.2, 0.7, 1.0))))


def witnesses(torch):
    def theirs(z):
        probabilities = torch.softmax(z, dim=-1)
        return torch.where(probabilities < 0.1 * probabilities.max(-1, keepdim=True).values, -torch.inf, z)

    return [(theirs, (np.random.default_rng(4).normal(0, 2, (4, 7)),), {"p": 0.1})]


@given(cases())
def test_forward_keeps_probabilities_of_a_fraction_of_the_largest(case):
    (logits,), p = case.inputs, case.static["p"]
    z, saved = min_p.forward(logits, p=p)
    for place in np.ndindex(logits.shape[:-1]):
        weights = [math.exp(x) for x in logits[place]]
        kept = [w >= p * max(weights) for w in weights]
        assert z[place].tolist() == [x if k else -np.inf for x, k in zip(logits[place], kept, strict=True)]
    d_z = np.arange(1.0, z.size + 1).reshape(z.shape)
    np.testing.assert_array_equal(min_p.vjp(saved, d_z, p=p)[0], np.where(np.isfinite(z), d_z, 0))


def test_0_keeps_all_and_1_the_likeliest_also_several():
    logits = np.array([1.0, -np.inf, 3.0, -20.0, 3.0])
    assert min_p.forward(logits, p=0.0)[0].tolist() == logits.tolist()
    assert min_p.forward(logits, p=1.0)[0].tolist() == [-np.inf, -np.inf, 3, -np.inf, 3]


def test_huge_logits():
    assert min_p.forward(np.array([1e4, -1e4, 1e4 - 1]), p=0.3)[0].tolist() == [1e4, -np.inf, 1e4 - 1]


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_p_is_a_ratio(p):
    with pytest.raises(ShapeError, match=r"p must be in \[0, 1\]"):
        min_p.forward(np.ones(3), p=p)
