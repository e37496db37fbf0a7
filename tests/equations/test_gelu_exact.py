import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations.gelu import gelu
from byhand.equations.gelu_exact import gelu_exact
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    return Case(draw(st.sampled_from((0.1, 1.0, 3.0))) * draw(arrays(*draw(shapes()))))


@given(cases())
def test_forward_is_x_times_the_normal_distribution(case):
    (x,) = case.inputs
    y, _ = gelu_exact.forward(x)
    for index in np.ndindex(x.shape):
        value = float(x[index])
        close(y[index], value * math.erfc(-value / math.sqrt(2)) / 2)


def test_the_tanh_form_stays_within_a_thousandth():
    x = np.linspace(-8, 8, 16001)
    (exact, saved), (near, saved_near) = gelu_exact.forward(x), gelu.forward(x)
    assert 4e-4 < np.abs(exact - near).max() < 5e-4
    slopes = [e.vjp(s, np.ones_like(x))[0] for e, s in ((gelu_exact, saved), (gelu, saved_near))]
    assert 8e-4 < np.abs(slopes[0] - slopes[1]).max() < 1e-3


def test_large_values_pass_and_small_ones_are_held_back():
    y, saved = gelu_exact.forward(np.array([-1e30, -100.0, 0.0, 100.0, 1e30]))
    close(y, [0, 0, 0, 100, 1e30])
    close(gelu_exact.vjp(saved, np.ones(5))[0], [0, 0, 0.5, 1, 1])


def test_typical_mistakes():
    x = np.array([-1.0, 2.0])
    found = wrong_numbers(gelu_exact, Case(x), (1,))
    assert found == pytest.approx(
        {
            "used ReLU": 2.0,
            "forgot to divide by the square root of 2": 1 + math.erf(2),
            "forgot the factor one half": 2 * (1 + math.erf(math.sqrt(2))),
            "used the tanh form": gelu.forward(x)[0][1],
        }
    )
    d = np.array([1.0, 3.0])
    gate = (1 + math.erf(math.sqrt(2))) / 2
    assert wrong_numbers(gelu_exact, Case(x), (1,), d) == pytest.approx(
        {
            "held the gate constant": 3 * gate,
            "forgot the factor x before the density": 3 * (gate + math.exp(-2) / math.sqrt(2 * math.pi)),
        }
    )


def witnesses(torch):
    """What PyTorch computes."""
    return [(torch.nn.functional.gelu, (3 * np.random.default_rng(5).standard_normal((4, 5)),), {})]
