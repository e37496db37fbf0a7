import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import low_rank
from byhand.errors import ShapeError
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, lengths, shapes


@st.composite
def cases(draw):
    rows, rank, width = draw(shapes()), draw(lengths), draw(lengths)
    scale = draw(st.sampled_from((0.5, 1.0, 2.0)))
    return Case(draw(arrays(*rows, width)), draw(arrays(*rows, rank)), draw(arrays(rank, width)), scale=scale)


@given(cases())
def test_forward_adds_a_scaled_row_times_column(case):
    (y, h, up), scale = case.inputs, case.static["scale"]
    z, _ = low_rank.forward(y, h, up, scale=scale)
    for *place, o in np.ndindex(z.shape):
        added = sum(h[(*place, r)] * up[r, o] for r in range(up.shape[0]))
        close(z[(*place, o)], y[(*place, o)] + scale * added)


def test_an_adapted_row_is_a_row_of_the_adapted_matrix():
    rng = np.random.default_rng(3)
    x, w, a, b = (rng.standard_normal(shape) for shape in ((2, 5, 6), (6, 4), (6, 3), (3, 4)))
    adapted, _ = low_rank.forward(x @ w, x @ a, b, scale=2.0)
    merged, _ = low_rank.forward(w, a, b, scale=2.0)
    close(adapted, x @ merged)


def test_wrong_shapes():
    with pytest.raises(ShapeError, match="up must be"):
        low_rank.forward(np.ones((2, 3)), np.ones((2, 1)), np.ones(3), scale=1.0)
    with pytest.raises(ShapeError, match="not of the rows"):
        low_rank.forward(np.ones((2, 3)), np.ones((1, 2)), np.ones((2, 3)), scale=1.0)
    with pytest.raises(ShapeError, match="not of the rows"):
        low_rank.forward(np.ones((2, 3)), np.ones((2, 2)), np.ones((1, 3)), scale=1.0)


def test_typical_mistakes():
    case = Case(np.array([[1.0]]), np.array([[2.0, 3.0]]), np.array([[5.0], [7.0]]), scale=2.0)
    assert wrong_numbers(low_rank, case, (0, 0)) == {
        "forgot the scale": 1 + 31,
        "forgot the frozen matrix": 2 * 31,
        "scaled the frozen matrix too": 2 * (1 + 31),
    }
    assert wrong_numbers(low_rank, case, (0, 0), np.array([[1.0]])) == {}, "y's cotangent has no scale to forget"


def witnesses(torch):
    """What PyTorch computes."""
    rng = np.random.default_rng(7)
    inputs = tuple(rng.standard_normal(shape) for shape in ((2, 3, 4), (2, 3, 2), (2, 4)))
    return [(lambda y, h, up: y + 0.5 * (h @ up), inputs, {"scale": 0.5})]
