import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand.engine.arrays import scatter_add_rows, sum_to_shape
from byhand.equations.broadcast import broadcast_index, require_broadcast
from byhand.errors import ShapeError
from equations.strategies import broadcasting_to, shapes


@given(st.data())
def test_an_element_is_found_again(data):
    shape = data.draw(shapes())
    small = np.random.default_rng(0).standard_normal(data.draw(broadcasting_to(shape)))
    large = np.broadcast_to(small, shape)
    for index in np.ndindex(shape):
        assert small[broadcast_index(index, small.shape)] == large[index]


@settings(max_examples=200)
@given(st.data())
def test_sum_to_shape_undoes_broadcasting(data):
    shape = data.draw(shapes())
    small = data.draw(broadcasting_to(shape))
    d = np.random.default_rng(0).standard_normal(shape)
    expected = np.zeros(small)
    for index in np.ndindex(shape):
        expected[broadcast_index(index, small)] += d[index]
    result = sum_to_shape(d, small)
    assert result.shape == small
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@given(shapes(), shapes())
def test_agrees_with_numpy_on_what_broadcasts(one, other):
    a, b = np.ones(one), np.ones(other)
    try:
        np.broadcast_shapes(one, other)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            require_broadcast("add", a, b)
    else:
        require_broadcast("add", a, b)


def test_inner_axes_are_exempt():
    require_broadcast("matmul", np.ones((5, 2, 3)), np.ones((1, 3, 4)), inner=2)
    with pytest.raises(ShapeError, match="do not broadcast"):
        require_broadcast("matmul", np.ones((5, 2, 3)), np.ones((2, 3, 4)), inner=2)


@given(st.lists(st.integers(0, 4), max_size=12))
def test_scatter_add_is_a_loop(index):
    rows = np.random.default_rng(0).standard_normal((len(index), 3))
    expected = np.zeros((5, 3))
    for i, row in zip(index, rows, strict=True):
        expected[i] += row
    result = scatter_add_rows(5, np.array(index, dtype=int), rows)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
