import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import transpose
from byhand.errors import ShapeError
from equations.strategies import Case, arrays, lengths, shapes


@st.composite
def cases(draw):
    return Case(draw(arrays(*draw(shapes(most=2)), draw(lengths), draw(lengths))))


@given(cases())
def test_forward_reads_across_the_diagonal(case):
    (a,) = case.inputs
    y, _ = transpose.forward(a)
    for *batch, m, n in np.ndindex(a.shape):
        assert y[(*batch, n, m)] == a[(*batch, m, n)]


def test_a_vector_has_no_transpose():
    with pytest.raises(ShapeError, match="needs a matrix"):
        transpose.forward(np.ones(3))
