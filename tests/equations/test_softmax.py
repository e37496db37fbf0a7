import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import softmax
from byhand.errors import ShapeError
from equations.checks import close
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    return Case(draw(arrays(*draw(shapes(1)))))


@given(cases())
def test_forward_normalises_exponentials(case):
    (x,) = case.inputs
    p, _ = softmax.forward(x)
    for *row, i in np.ndindex(p.shape):
        close(p[(*row, i)], math.exp(x[(*row, i)]) / sum(math.exp(v) for v in x[tuple(row)]))


def test_a_row_of_minus_infinity_is_zero_forward_and_backward():
    x = np.array([[-np.inf] * 3, [-np.inf, 0.0, -np.inf], [0.0, 0.0, -np.inf]])
    p, saved = softmax.forward(x)
    np.testing.assert_array_equal(p, [[0, 0, 0], [0, 1, 0], [0.5, 0.5, 0]])
    (d_x,) = softmax.vjp(saved, np.array([[1.0, 2.0, 3.0]] * 3))
    np.testing.assert_array_equal(d_x, [[0, 0, 0], [0, 0, 0], [-0.25, 0.25, 0]])
    assert softmax.terms((0, 1), (x,), p).value == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_logits_stay_finite(dtype):
    p, saved = softmax.forward(np.array([[1e4, -1e4, 1e4], [-1e4, -1e4, -1e4]], dtype))
    close(p, [[0.5, 0, 0.5], [1 / 3, 1 / 3, 1 / 3]], 1e-7)
    (d_x,) = softmax.vjp(saved, np.array([[1, 2, 3]] * 2, dtype))
    close(d_x, [[-0.5, 0, 0.5], [-1 / 3, 0, 1 / 3]], 1e-6)


def test_a_number_has_no_last_axis():
    with pytest.raises(ShapeError, match="at least one axis"):
        softmax.forward(np.array(1.0))
