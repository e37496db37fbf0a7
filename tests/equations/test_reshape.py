import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import reshape
from byhand.errors import ShapeError
from equations.strategies import Case, arrays, shapes


@st.composite
def cases(draw):
    shape = draw(shapes())
    x, target = draw(arrays(*shape)), list(draw(st.permutations(shape)))
    if target and draw(st.booleans()):
        target[draw(st.integers(0, len(target) - 1))] = -1
    elif draw(st.booleans()):
        target = [1, x.size]
    return Case(x, shape=tuple(target))


@given(cases())
def test_forward_keeps_the_row_major_order(case):
    (x,), shape = case.inputs, case.static["shape"]
    y, _ = reshape.forward(x, shape=shape)
    assert len(y.shape) == len(shape)
    assert all(n in (m, -1) for m, n in zip(y.shape, shape, strict=True))
    assert [y[i] for i in np.ndindex(y.shape)] == [x[i] for i in np.ndindex(x.shape)]


@pytest.mark.parametrize("shape", [(4,), (-1, -1), (-1, 4), (0, -1), (7, 1)])
def test_shapes_that_do_not_fit(shape):
    with pytest.raises(ShapeError, match=r"\(2, 3\) holds 6 elements and cannot become"):
        reshape.forward(np.ones((2, 3)), shape=shape)
