import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import gelu
from equations.checks import close
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    return Case(draw(st.sampled_from((0.1, 1.0, 3.0))) * draw(arrays(*draw(shapes()))))


@given(cases())
def test_forward_is_a_sigmoid_gate(case):
    (x,) = case.inputs
    y, _ = gelu.forward(x)
    for index in np.ndindex(x.shape):
        value = float(x[index])
        u = math.sqrt(2 / math.pi) * (value + 0.044715 * value**3)
        close(y[index], value / (1 + math.exp(-2 * u)))  # (1 + tanh u) / 2 is the sigmoid of 2u


def test_large_values_pass_and_small_ones_are_held_back():
    y, saved = gelu.forward(np.array([-100.0, 0.0, 100.0]))
    close(y, [0, 0, 100])
    close(gelu.vjp(saved, np.ones(3))[0], [0, 0.5, 1])
