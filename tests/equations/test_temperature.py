import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import temperature
from byhand.errors import ShapeError
from equations.checks import close
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    return Case(draw(arrays(*draw(shapes(1)))), tau=draw(st.sampled_from((0.25, 1.0, 1.7))))


@given(cases())
def test_forward_divides(case):
    (logits,), tau = case.inputs, case.static["tau"]
    z, _ = temperature.forward(logits, tau=tau)
    for index in np.ndindex(z.shape):
        close(z[index] * tau, logits[index])


@pytest.mark.parametrize("tau", [0.0, -1.0, float("nan")])
def test_tau_must_be_positive(tau):
    with pytest.raises(ShapeError, match="tau must be positive"):
        temperature.forward(np.ones(3), tau=tau)
