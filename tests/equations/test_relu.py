import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import relu
from equations.checks import close
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    return Case(draw(arrays(*draw(shapes()), gap=0.01)))  # finite differences cannot see past the kink


@given(cases())
def test_forward_cuts_at_zero(case):
    (x,) = case.inputs
    y, _ = relu.forward(x)
    for index in np.ndindex(x.shape):
        assert y[index] == max(float(x[index]), 0.0)


def test_the_slope_at_zero_is_zero():
    y, saved = relu.forward(np.array([-1.0, -0.0, 0.0, 2.0]))
    close(y, [0, 0, 0, 2])
    close(relu.vjp(saved, np.full(4, 3.0))[0], [0, 0, 0, 3])


def test_nan_stays_visible():
    assert np.isnan(relu.forward(np.array([np.nan]))[0][0])
