import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import linear
from byhand.errors import ShapeError
from equations.checks import close
from equations.strategies import Case, arrays, lengths, shapes


@st.composite
def cases(draw):
    i, o = draw(lengths), draw(lengths)
    bias = [draw(arrays(o))] if draw(st.booleans()) else []
    return Case(draw(arrays(*draw(shapes()), i)), draw(arrays(i, o)), *bias)


@given(cases())
def test_forward_is_rows_times_columns_plus_bias(case):
    x, weight, *bias = case.inputs
    y, _ = linear.forward(*case.inputs)
    assert y.shape == (*x.shape[:-1], weight.shape[1])
    for *place, o in np.ndindex(y.shape):
        products = sum(x[(*place, i)] * weight[i, o] for i in range(weight.shape[0]))
        close(y[(*place, o)], products + (bias[0][o] if bias else 0.0))


def test_wrong_shapes():
    with pytest.raises(ShapeError, match="differ in the inner length"):
        linear.forward(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"bias must be \(4,\)"):
        linear.forward(np.ones((2, 3)), np.ones((3, 4)), np.ones(3))
    with pytest.raises(ShapeError, match="weight must be"):
        linear.forward(np.ones((2, 3)), np.ones(3))
