import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations.heads_rms_norm import heads_rms_norm
from byhand.equations.rms_norm import rms_norm
from byhand.errors import ShapeError
from equations.checks import close, wrong_numbers
from equations.strategies import Case, arrays, distinct, lengths


@st.composite
def cases(draw):
    b, h, t, d = (draw(lengths) for _ in range(4))
    gain = [draw(arrays(h * d))] if draw(st.booleans()) else []
    return Case(draw(distinct(b, h, t, d)), *gain, eps=draw(st.sampled_from((1e-5, 0.1))))


@given(cases())
def test_it_is_the_norm_of_all_heads_side_by_side(case):
    x, *gain = case.inputs
    b, h, t, d = x.shape
    y, saved = heads_rms_norm.forward(x, *gain, **case.static)
    rows = x.transpose(0, 2, 1, 3).reshape(b, t, h * d)
    expected, saved_rows = rms_norm.forward(rows, *gain, **case.static)
    close(y.transpose(0, 2, 1, 3).reshape(b, t, h * d), expected, 1e-9)
    d_x, *d_gain = heads_rms_norm.vjp(saved, np.cos(y), **case.static)
    due = rms_norm.vjp(saved_rows, np.cos(expected), **case.static)
    close(d_x.transpose(0, 2, 1, 3).reshape(b, t, h * d), due[0], 1e-9)
    for found, wanted in zip(d_gain, due[1:], strict=True):
        close(found, wanted, 1e-9)


def test_wrong_shapes():
    with pytest.raises(ShapeError, match=r"x must be \(B, H, T, D\), not \(2, 3\)"):
        heads_rms_norm.forward(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"gain must be \(6,\)"):
        heads_rms_norm.forward(np.ones((1, 2, 4, 3)), np.ones(3))


def test_typical_mistakes():
    case = Case(np.array([[[[3.0, 1.0]], [[5.0, 1.0]]]]), np.array([2.0, 1.0, 1.0, 3.0]), eps=0.0)
    assert wrong_numbers(heads_rms_norm, case, (0, 0, 0, 0)) == pytest.approx(
        {
            "normalised the head alone": 2 * 3 / 5**0.5,
            "divided by the mean square instead of its root": 2 * 3 / 9,
        }
    )


def witnesses(torch):
    """What PyTorch computes of the heads side by side."""
    rng, F = np.random.default_rng(5), torch.nn.functional
    x, gain = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal(15)

    def normed(x, *gain):
        rows = x.transpose(1, 2).reshape(2, 4, 15)
        return F.rms_norm(rows, (15,), *gain, eps=1e-3).reshape(2, 4, 3, 5).transpose(1, 2)

    return [(normed, (x, gain), {"eps": 1e-3}), (normed, (x,), {"eps": 1e-3})]
