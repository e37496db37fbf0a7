import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import relu_squared
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    return Case(draw(arrays(*draw(shapes()), gap=0.01)))  # finite differences cannot see past the kink of the slope


@given(cases())
def test_forward_cuts_and_squares(case):
    (x,) = case.inputs
    y, _ = relu_squared.forward(x)
    for index in np.ndindex(x.shape):
        assert y[index] == max(float(x[index]), 0.0) ** 2


def test_value_and_slope_begin_at_zero():
    y, saved = relu_squared.forward(np.array([-1.0, -0.0, 0.0, 2.0]))
    close(y, [0, 0, 0, 4])
    close(relu_squared.vjp(saved, np.full(4, 3.0))[0], [0, 0, 0, 12])


def test_nan_stays_visible():
    y, saved = relu_squared.forward(np.array([np.nan]))
    assert np.isnan(y[0])
    assert np.isnan(relu_squared.vjp(saved, np.ones(1))[0][0])


def test_typical_mistakes():
    case = Case(np.array([-2.0, 3.0]))
    assert wrong_numbers(relu_squared, case, (0,)) == {
        "squared the negative number": 4,
        "forgot to square": 0,
        "doubled instead of squaring": 0,
    }
    assert wrong_numbers(relu_squared, case, (1,))["forgot to square"] == 3
    d = np.array([5.0, 5.0])
    assert wrong_numbers(relu_squared, case, (1,), d) == {
        "forgot the factor 2": 15,
        "used the derivative of ReLU": 5,
        "let the gradient through where x is negative": 30,
    }
    assert wrong_numbers(relu_squared, case, (0,), d)["let the gradient through where x is negative"] == -20


def witnesses(torch):
    """What PyTorch computes."""
    x = np.random.default_rng(5).standard_normal((3, 5))
    return [(lambda x: torch.relu(x).square(), (x,), {})]


def test_the_slope_of_large_numbers_is_steep():
    _, saved = relu_squared.forward(np.array([1e3]))
    assert relu_squared.vjp(saved, np.ones(1))[0][0] == pytest.approx(2e3)
