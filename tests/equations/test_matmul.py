import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import matmul
from byhand.errors import ShapeError
from equations.checks import close
from equations.strategies import Case, arrays, broadcasting_to, lengths, shapes


@st.composite
def cases(draw):
    m, k, n, batch = draw(lengths), draw(lengths), draw(lengths), draw(shapes(most=2))
    return Case(
        draw(arrays(*draw(broadcasting_to(batch)), m, k)),
        draw(arrays(*draw(broadcasting_to(batch)), k, n)),
    )


@given(cases())
def test_forward_is_rows_times_columns(case):
    a, b = case.inputs
    y, _ = matmul.forward(a, b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    assert y.shape == (*batch, a.shape[-2], b.shape[-1])
    a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    for *at, m, n in np.ndindex(y.shape):
        close(y[(*at, m, n)], sum(a[(*at, m, k)] * b[(*at, k, n)] for k in range(a.shape[-1])))


def test_wrong_shapes():
    with pytest.raises(ShapeError, match="inner lengths"):
        matmul.forward(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ShapeError, match="needs matrices"):
        matmul.forward(np.ones((2, 3)), np.ones(3))
    with pytest.raises(ShapeError, match="do not broadcast"):
        matmul.forward(np.ones((2, 2, 3)), np.ones((3, 3, 4)))
