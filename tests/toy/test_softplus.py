import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from equations.checks import check_gradient, check_halves, check_terms, close
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    return Case(draw(st.sampled_from((0.1, 1.0, 3.0))) * draw(arrays(*draw(shapes()))))


@given(cases())
def test_laws(softplus, case):
    check_gradient(softplus, case)
    check_halves(softplus, case)
    check_terms(softplus, case)


def test_terms_of_a_number_close_to_zero(softplus):
    """The logarithm of 1 and a little keeps the rounding of the 1."""
    check_terms(softplus, Case(np.array(-10.2603372)))


def test_values(softplus):
    y, saved = softplus.forward(np.array([-1000.0, 0.0, 1000.0]))
    close(y, [0, math.log(2), 1000])
    close(softplus.vjp(saved, np.ones(3))[0], [0, 0.5, 1])
