import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import softcap
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    x = draw(st.sampled_from((0.1, 1.0, 5.0))) * draw(arrays(*draw(shapes())))
    return Case(x, cap=draw(st.sampled_from((0.7, 3.0, 30.0))))


@given(cases())
def test_forward_is_a_scaled_difference_of_exponentials(case):
    (x,), cap = case.inputs, case.static["cap"]
    y, _ = softcap.forward(x, cap=cap)
    for index in np.ndindex(x.shape):
        up, down = math.exp(float(x[index]) / cap), math.exp(-float(x[index]) / cap)
        close(y[index], cap * (up - down) / (up + down))


def test_small_numbers_pass_and_no_number_passes_the_cap():
    x = np.array([-1e6, -40.0, -1e-3, 0.0, 1e-3, 40.0, 1e6])
    y, saved = softcap.forward(x, cap=15.0)
    close(y[[0, -1]], [-15, 15])
    close(y[2:5], x[2:5], 1e-8)
    (slope,) = softcap.vjp(saved, np.ones(7), cap=15.0)
    close(slope[[0, 3, -1]], [0, 1, 0])
    assert (np.diff(y) > 0).all(), "the order of logits stays"


def test_nan_stays_visible():
    assert np.isnan(softcap.forward(np.array([np.nan]), cap=15.0)[0][0])


def test_typical_mistakes():
    case = Case(np.array([20.0]), cap=10.0)
    bent = math.tanh(2)
    assert wrong_numbers(softcap, case, (0,)) == pytest.approx(
        {
            "forgot to multiply by the cap": bent,
            "forgot to divide by the cap": 10 * math.tanh(20),
            "cut off at the cap": 10,
        }
    )
    assert wrong_numbers(softcap, Case(np.array([-20.0]), cap=10.0), (0,))["cut off at the cap"] == -10
    assert wrong_numbers(softcap, case, (0,), np.array([3.0])) == pytest.approx(
        {
            "let the gradient through unchanged": 3,
            "forgot the square": 3 * (1 - bent),
            "divided by the cap once more": 3 * (1 - bent**2) / 10,
        }
    )


def witnesses(torch):
    """What PyTorch computes."""
    x = 20 * np.random.default_rng(5).standard_normal((3, 5))
    return [(lambda x: 15.0 * torch.tanh(x / 15.0), (x,), {"cap": 15.0})]
