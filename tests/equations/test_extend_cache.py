import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations.extend_cache import extend_cache
from byhand.errors import ShapeError
from equations.checks import wrong_numbers
from equations.strategies import Case, arrays, integers, lengths


@st.composite
def cases(draw):
    b, h, s, t, d = (draw(lengths) for _ in range(5))
    return Case(draw(arrays(b, h, s, d)), draw(arrays(b, h, t, d)), draw(integers(b, below=9)))


@given(cases())
def test_forward_puts_row_after_row(case):
    kept, x, start = case.inputs
    expected = kept.copy()
    for b in range(len(x)):
        for t in range(x.shape[2]):
            expected[b, :, (start[b] + t) % kept.shape[2]] = x[b, :, t]
    np.testing.assert_array_equal(extend_cache.forward(*case.inputs)[0], expected)


@given(cases())
def test_one_by_one_is_all_at_once(case):
    kept, x, start = case.inputs
    whole, _ = extend_cache.forward(kept, x, start)
    for t in range(x.shape[2]):
        kept, _ = extend_cache.forward(kept, x[:, :, t : t + 1], start + t)
    np.testing.assert_array_equal(kept, whole)


@given(cases())
def test_the_numpy_runtime_does_the_same_in_place(case):
    from byhand.runtimes.numpy.decoder import extend

    kept, x, start = case.inputs
    whole, _ = extend_cache.forward(kept, x, start)
    extend(kept, x, start)
    np.testing.assert_array_equal(kept, whole)


def test_wrong_shapes():
    kept, x = np.ones((2, 1, 3, 4)), np.ones((2, 1, 1, 4))
    with pytest.raises(ShapeError, match="differ in batch, heads or width"):
        extend_cache.forward(kept, x[..., :2], np.zeros(2, int))
    with pytest.raises(ShapeError, match="not one number for each"):
        extend_cache.forward(kept, x, np.zeros(1, int))


def test_typical_mistakes():
    case = Case(np.zeros((1, 1, 3, 1)), np.ones((1, 1, 1, 1)), np.array([1]))
    wrong = {s: wrong_numbers(extend_cache, case, (0, 0, s, 0)) for s in range(3)}
    assert [list(found.values()) for found in wrong.values()] == [[1.0], [0.0], [0.0]]  # right: 0, 1, 0


def witnesses(torch):
    """What PyTorch computes: each new row put into its place of the ring, one stream after the other."""
    rng = np.random.default_rng(8)

    def put(kept, x, start):
        rows = list(kept.unbind(2))
        for t, row in enumerate(x.unbind(2)):
            places = (start + t) % len(rows)
            here = [(places == s)[:, None, None] for s in range(len(rows))]
            rows = [torch.where(mask, row, old) for mask, old in zip(here, rows, strict=True)]
        return torch.stack(rows, 2)

    return [
        (put, (rng.standard_normal((2, 3, s, 2)), rng.standard_normal((2, 3, t, 2)), np.array([start, 4])), {})
        for s, t, start in ((4, 1, 3), (5, 3, 0), (2, 3, 1))
    ]
