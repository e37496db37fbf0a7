import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations.rms_norm import rms_norm
from byhand.errors import ShapeError
from equations.checks import check_gradient, close, wrong_numbers
from equations.strategies import Case, arrays, distinct, lengths, shapes


@st.composite
def cases(draw):
    width = draw(lengths)
    gain = [draw(arrays(width))] if draw(st.booleans()) else []
    return Case(draw(distinct(*draw(shapes(most=2)), width)), *gain, eps=draw(st.sampled_from((1e-5, 0.1))))


@given(cases())
def test_forward_scales_and_does_not_centre(case):
    x, *gain = case.inputs
    y, _ = rms_norm.forward(*case.inputs, **case.static)
    for *place, c in np.ndindex(x.shape):
        row = [float(v) for v in x[tuple(place)]]
        xhat = row[c] / (sum(v * v for v in row) / len(row) + case.static["eps"]) ** 0.5
        close(y[(*place, c)], gain[0][c] * xhat if gain else xhat, 1e-9)


@given(cases())
def test_the_gradient_is_at_right_angles_to_the_row(case):
    """Without eps: stretching a row changes nothing."""
    x, *gain = case.inputs
    x = x + 3.0 * np.sign(x + 0.5)
    _, saved = rms_norm.forward(x, *gain, eps=0.0)
    d_x = rms_norm.vjp(saved, np.cos(x), eps=0.0)[0]
    close(np.sum(x * d_x, axis=-1), np.zeros(x.shape[:-1]), 1e-9)


def test_a_row_of_zeros_stays_zero():
    close(rms_norm.forward(np.zeros((2, 3)), np.ones(3))[0], np.zeros((2, 3)))
    check_gradient(rms_norm, Case(np.zeros((2, 3)), np.arange(3.0)), step=1e-8)


def test_wrong_shapes():
    for gain in (np.ones(2), np.ones((1, 3))):
        with pytest.raises(ShapeError, match=r"gain must be \(3,\)"):
            rms_norm.forward(np.ones((2, 3)), gain)


def test_typical_mistakes():
    case = Case(np.array([[-1.0, 7.0, 5.0, -5.0]]), np.array([2.0, 1.0, 1.0, 3.0]), eps=0.0)
    found = wrong_numbers(rms_norm, case, (0, 3))
    deviations = case.inputs[0][0] - 1.5
    assert found == pytest.approx(
        {
            "divided by the mean square instead of its root": 3 * -5 / 25,
            "subtracted the mean: that is LayerNorm": 3 * deviations[3] / np.mean(deviations**2) ** 0.5,
        }
    )
    (wrong,) = wrong_numbers(rms_norm, case, (0, 0), np.array([[1.0, 0.0, 0.0, 0.0]])).values()
    assert wrong == pytest.approx(2 / 5)


def witnesses(torch):
    """What PyTorch computes, with and without a gain."""
    rng, F = np.random.default_rng(5), torch.nn.functional
    x, gain = rng.standard_normal((2, 3, 5)), rng.standard_normal(5)
    return [
        (lambda x, g: F.rms_norm(x, (5,), g, 1e-3), (x, gain), {"eps": 1e-3}),
        (lambda x: F.rms_norm(x, (5,), None, 1e-5), (x,), {}),
    ]
