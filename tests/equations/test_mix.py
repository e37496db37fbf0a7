import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import mix
from byhand.errors import ShapeError
from equations.checks import close
from equations.strategies import Case, arrays, lengths


@st.composite
def cases(draw):
    b, h, t, s, d = (draw(lengths) for _ in range(5))
    return Case(draw(arrays(b, h, t, s)), draw(arrays(b, h, s, d)))


@given(cases())
def test_forward_is_a_weighted_sum(case):
    weights, v = case.inputs
    mixed, _ = mix.forward(weights, v)
    assert mixed.shape == (*weights.shape[:3], v.shape[3])
    for b, h, t, d in np.ndindex(mixed.shape):
        close(mixed[b, h, t, d], sum(weights[b, h, t, s] * v[b, h, s, d] for s in range(v.shape[2])))


def test_wrong_shapes():
    with pytest.raises(ShapeError, match="differ in keys"):
        mix.forward(np.ones((1, 1, 2, 3)), np.ones((1, 1, 2, 3)))
    with pytest.raises(ShapeError, match="differ in heads"):
        mix.forward(np.ones((2, 1, 2, 3)), np.ones((1, 1, 3, 3)))
