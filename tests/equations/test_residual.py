import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import residual
from byhand.errors import ShapeError
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    shape = draw(shapes(1))
    return Case(draw(arrays(*shape)), draw(arrays(*shape)))


@given(cases())
def test_forward_is_the_sum_element_by_element(case):
    x, a = case.inputs
    y, _ = residual.forward(x, a)
    for index in np.ndindex(x.shape):
        assert y[index] == x[index] + a[index]


def test_never_broadcasts():
    with pytest.raises(ShapeError, match="must have the same shape"):
        residual.forward(np.ones((2, 3)), np.ones((1, 3)))
