import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations.silu import silu
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    return Case(draw(st.sampled_from((0.1, 1.0, 3.0))) * draw(arrays(*draw(shapes()))))


@given(cases())
def test_forward_is_x_times_its_sigmoid(case):
    (x,) = case.inputs
    y, _ = silu.forward(x)
    for index in np.ndindex(x.shape):
        value = float(x[index])
        close(y[index], value * (1 + math.tanh(value / 2)) / 2)  # the sigmoid, by its other formula


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_ends_are_reached_without_overflow(dtype):
    x = np.array([-1e30, -800, -50, 0, 50, 800, 1e30], dtype)
    y, saved = silu.forward(x)
    close(y, [0, 0, -50 * math.exp(-50), 0, 50, 800, dtype(1e30)])
    assert y[2] == pytest.approx(-50 * math.exp(-50), rel=1e-6)  # small, and still exact to its last digits
    close(silu.vjp(saved, np.ones_like(x))[0], [0, 0, -49 * math.exp(-50), 0.5, 1, 1, 1])
    for index in range(x.size):
        assert silu.terms((index,), (x,), y).value == pytest.approx(float(y[index]), rel=1e-6)


@given(cases())
def test_the_two_sides_differ_by_x(case):
    """sigmoid(x) + sigmoid(-x) = 1."""
    (x,) = case.inputs
    close(silu.forward(x)[0] - silu.forward(-x)[0], x)


def test_nan_stays_visible():
    assert np.isnan(silu.forward(np.array([np.nan]))[0]).all()


def test_typical_mistakes():
    x = np.array([-1.0, 2.0])
    gate = 1 / (1 + math.exp(-2))
    assert wrong_numbers(silu, Case(x), (1,)) == pytest.approx(
        {
            "used ReLU": 2.0,
            "kept the sigmoid alone, without the factor x": gate,
            "wrote exp(x) instead of exp(-x)": 2 / (1 + math.exp(2)),
        }
    )
    assert wrong_numbers(silu, Case(x), (1,), np.array([1.0, 3.0])) == pytest.approx(
        {"held the gate constant": 3 * gate, "used the derivative of the sigmoid alone": 3 * gate * (1 - gate)}
    )


def witnesses(torch):
    """What PyTorch computes."""
    return [(torch.nn.functional.silu, (3 * np.random.default_rng(5).standard_normal((4, 5)),), {})]
