"""Rounding to bfloat16: to the nearest, of two equally near to the even one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from byhand.runtimes.bfloat16 import rounded


def test_ties_go_to_the_even_one():
    """Next to 1, bfloat16 has steps of 2^-7; 1 + 2^-8 and 1 + 3 * 2^-8 stand in the middle of two."""
    given_values = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 2**-8], np.float32)
    assert rounded(given_values).tolist() == [1.0, 1 + 2**-6, 1 + 2**-7, -1.0]


def test_what_is_no_number_stays_so():
    out = rounded(np.array([np.nan, np.inf, -np.inf, -0.0, 3.4e38], np.float32))
    assert np.isnan(out[0])
    assert out[1:3].tolist() == [np.inf, -np.inf]
    assert np.signbit(out[3])
    assert out[4] == np.inf


@given(st.floats(2.0**-100, 2.0**100, width=32))
def test_the_error_is_at_most_half_a_step(x):
    out = rounded(np.array([x, -x], np.float32))
    assert abs(out[0] - x) <= 2**-8 * x
    assert out[1] == -out[0]
    assert (out.view(np.uint32) & 0xFFFF).max() == 0
    assert rounded(out).tolist() == out.tolist()
