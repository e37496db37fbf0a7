import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import add_positional
from byhand.errors import ShapeError
from equations.checks import check_gradient, check_halves, check_terms, close
from equations.strategies import Case, arrays, lengths, shapes


@st.composite
def cases(draw):
    t, c, start, spare = draw(lengths), draw(lengths), draw(st.integers(0, 3)), draw(st.integers(0, 2))
    e = draw(arrays(*draw(shapes(most=2)), t, c))
    return Case(e, draw(arrays(start + t + spare, c)), start=start)


@given(cases())
def test_gradient(case):
    check_gradient(add_positional, case)


@given(cases())
def test_halves(case):
    check_halves(add_positional, case)


@given(cases())
def test_terms(case):
    check_terms(add_positional, case)


@given(cases())
def test_forward_adds_the_row_of_each_position(case):
    (e, table), start = case.inputs, case.static["start"]
    x, _ = add_positional.forward(e, table, start=start)
    assert x.shape == e.shape
    for *batch, t, c in np.ndindex(e.shape):
        assert x[(*batch, t, c)] == e[(*batch, t, c)] + table[start + t, c]


def test_unused_positions_get_no_gradient():
    e, table = np.ones((2, 2, 3)), np.ones((5, 3))
    _, saved = add_positional.forward(e, table, start=1)
    _, d_table = add_positional.vjp(saved, np.ones((2, 2, 3)), start=1)
    close(d_table, [[0] * 3, [2] * 3, [2] * 3, [0] * 3, [0] * 3])


def test_wrong_shapes():
    with pytest.raises(ShapeError, match="widths of"):
        add_positional.forward(np.ones((1, 2, 3)), np.ones((4, 2)))
    with pytest.raises(ShapeError, match="5 positions, but the table has 4"):
        add_positional.forward(np.ones((1, 2, 3)), np.ones((4, 3)), start=3)
