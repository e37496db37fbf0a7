import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import mul
from byhand.errors import ShapeError
from equations.strategies import Case, arrays, broadcasting_to, shapes


@st.composite
def cases(draw):
    shape = draw(shapes())
    return Case(*(draw(arrays(*draw(broadcasting_to(shape)))) for _ in range(2)))


@given(cases())
def test_forward_is_the_product_element_by_element(case):
    a, b = case.inputs
    y, _ = mul.forward(a, b)
    a, b = np.broadcast_arrays(a, b)
    assert y.shape == a.shape
    for index in np.ndindex(y.shape):
        assert y[index] == a[index] * b[index]


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ShapeError, match=r"mul: shapes \(2, 3\) and \(2,\) do not broadcast"):
        mul.forward(np.ones((2, 3)), np.ones(2))
