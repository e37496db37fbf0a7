import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import split_qkv
from byhand.errors import ShapeError
from equations.checks import check_gradient, check_halves, check_terms
from equations.strategies import Case, arrays, lengths


@st.composite
def cases(draw):
    b, t, h, d = (draw(lengths) for _ in range(4))
    return Case(draw(arrays(b, t, 3 * h * d)), n_heads=h)


@given(cases())
def test_gradient(case):
    check_gradient(split_qkv, case)


@given(cases())
def test_halves(case):
    check_halves(split_qkv, case)


@given(cases())
def test_terms(case):
    check_terms(split_qkv, case)


@given(cases())
def test_forward_cuts_columns(case):
    (x,), n_heads = case.inputs, case.static["n_heads"]
    width = x.shape[2] // 3
    head_width = width // n_heads
    parts, _ = split_qkv.forward(x, n_heads=n_heads)
    for which, part in enumerate(parts):
        assert part.shape == (x.shape[0], n_heads, x.shape[1], head_width)
        for b, h, t, d in np.ndindex(part.shape):
            assert part[b, h, t, d] == x[b, t, which * width + h * head_width + d]


def test_wrong_shapes():
    with pytest.raises(ShapeError, match="does not split into 3 x 2 heads"):
        split_qkv.forward(np.ones((1, 2, 9)), n_heads=2)
    with pytest.raises(ShapeError, match="must be"):
        split_qkv.forward(np.ones((2, 9)), n_heads=1)
