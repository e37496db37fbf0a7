import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import add_positional
from byhand.errors import ShapeError
from equations.checks import close, same
from equations.strategies import Case, arrays, integers, lengths, shapes


@st.composite
def cases(draw):
    t, c, start, spare = draw(lengths), draw(lengths), draw(st.integers(0, 3)), draw(st.integers(0, 2))
    e = draw(arrays(*draw(shapes(most=2)), t, c))
    table = draw(arrays(start + t + spare, c))
    if e.ndim > 2 and draw(st.booleans()):
        return Case(e, table, draw(integers(len(e), below=start + spare + 1)))
    return Case(e, table, np.array(start)) if start or draw(st.booleans()) else Case(e, table)


@given(cases())
def test_forward_adds_the_row_of_each_position(case):
    e, table, *rest = case.inputs
    x, _ = add_positional.forward(*case.inputs)
    assert x.shape == e.shape
    for *batch, t, c in np.ndindex(e.shape):
        start = int(rest[0][batch[0]] if rest[0].ndim else rest[0]) if rest else 0
        assert x[(*batch, t, c)] == e[(*batch, t, c)] + table[start + t, c]


def test_unused_positions_get_no_gradient():
    e, table = np.ones((2, 2, 3)), np.ones((5, 3))
    _, saved = add_positional.forward(e, table, np.array(1))
    _, d_table, d_start = add_positional.vjp(saved, np.ones((2, 2, 3)))
    assert d_start is None
    close(d_table, [[0] * 3, [2] * 3, [2] * 3, [0] * 3, [0] * 3])


def test_wrong_shapes():
    with pytest.raises(ShapeError, match="widths of"):
        add_positional.forward(np.ones((1, 2, 3)), np.ones((4, 2)))
    with pytest.raises(ShapeError, match="5 positions, but the table has 4"):
        add_positional.forward(np.ones((1, 5, 3)), np.ones((4, 3)))
    with pytest.raises(IndexError):  # a value, which NumPy itself refuses; a model's door says it in words
        add_positional.forward(np.ones((1, 2, 3)), np.ones((4, 3)), np.array(3))


def test_a_start_of_zero_changes_no_bit():
    e, table = np.linspace(-1, 1, 12).reshape(2, 2, 3), np.linspace(-0.3, 0.7, 15).reshape(5, 3)
    d_x = np.where(e > 0, e, -0.0)
    (absent, saved), (zero, saved_zero) = (add_positional.forward(e, table, *start) for start in ((), (np.array(0),)))
    gradients, with_start = add_positional.vjp(saved, d_x), add_positional.vjp(saved_zero, d_x)
    same((zero, *with_start[:2]), (absent, *gradients))
