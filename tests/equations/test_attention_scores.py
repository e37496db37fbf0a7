import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import attention_scores
from byhand.errors import ShapeError
from equations.checks import close
from equations.strategies import Case, arrays, lengths


@st.composite
def cases(draw):
    b, h, t, s, d = (draw(lengths) for _ in range(5))
    divisor = draw(st.sampled_from(({}, {}, {"divisor": 1.0}, {"divisor": 7.5})))
    return Case(draw(arrays(b, h, t, d)), draw(arrays(b, h, s, d)), **divisor)


@given(cases())
def test_forward_is_a_scaled_dot_product(case):
    q, k = case.inputs
    scores, _ = attention_scores.forward(q, k, **case.static)
    divisor = case.static.get("divisor", q.shape[3])
    assert scores.shape == (*q.shape[:3], k.shape[2])
    for b, h, t, s in np.ndindex(scores.shape):
        close(scores[b, h, t, s], sum(q[b, h, t] * k[b, h, s]) / divisor**0.5)


def test_wrong_shapes():
    with pytest.raises(ShapeError, match="differ in head width"):
        attention_scores.forward(np.ones((1, 1, 2, 3)), np.ones((1, 1, 2, 4)))
    with pytest.raises(ShapeError, match="differ in batch or heads"):
        attention_scores.forward(np.ones((1, 2, 2, 3)), np.ones((1, 1, 2, 3)))
