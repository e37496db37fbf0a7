import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import split_qkv
from byhand.errors import ShapeError
from equations.strategies import Case, arrays, lengths


@st.composite
def cases(draw):
    b, t, h, d, group = (draw(lengths) for _ in range(5))
    if draw(st.booleans()):
        return Case(draw(arrays(b, t, 3 * h * d)), n_heads=h)
    return Case(draw(arrays(b, t, (group + 2) * h * d)), n_heads=group * h, n_kv_heads=h)


@given(cases())
def test_forward_cuts_columns(case):
    (x,), n_heads = case.inputs, case.static["n_heads"]
    heads = (n_heads, *[case.static.get("n_kv_heads", n_heads)] * 2)
    width = x.shape[2] // sum(heads)
    parts, _ = split_qkv.forward(x, **case.static)
    for which, part in enumerate(parts):
        assert part.shape == (x.shape[0], heads[which], x.shape[1], width)
        for b, h, t, d in np.ndindex(part.shape):
            assert part[b, h, t, d] == x[b, t, (sum(heads[:which]) + h) * width + d]


def test_wrong_shapes():
    with pytest.raises(ShapeError, match="does not split into 3 x 2 heads"):
        split_qkv.forward(np.ones((1, 2, 9)), n_heads=2)
    with pytest.raises(ShapeError, match=r"does not split into 4 \+ 2 x 2 heads"):
        split_qkv.forward(np.ones((1, 2, 12)), n_heads=4, n_kv_heads=2)
    with pytest.raises(ShapeError, match="must be"):
        split_qkv.forward(np.ones((2, 9)), n_heads=1)
