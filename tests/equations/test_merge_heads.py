import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import merge_heads
from byhand.errors import ShapeError
from equations.strategies import Case, arrays, lengths


@st.composite
def cases(draw):
    return Case(draw(arrays(*(draw(lengths) for _ in range(4)))))


@given(cases())
def test_forward_lays_heads_side_by_side(case):
    (x,) = case.inputs
    y, _ = merge_heads.forward(x)
    for b, h, t, d in np.ndindex(x.shape):
        assert y[b, t, h * x.shape[3] + d] == x[b, h, t, d]


def test_wrong_shape():
    with pytest.raises(ShapeError, match="must be"):
        merge_heads.forward(np.ones((2, 3, 4)))
