import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import layer_norm
from byhand.errors import ShapeError
from equations.checks import check_gradient, close
from equations.strategies import Case, arrays, distinct, lengths, shapes


@st.composite
def cases(draw):
    width = draw(lengths)
    affine = [draw(arrays(width)), draw(arrays(width))] if draw(st.booleans()) else []
    return Case(draw(distinct(*draw(shapes(most=2)), width)), *affine, eps=draw(st.sampled_from((1e-5, 0.1))))


@given(cases())
def test_forward_centres_and_scales(case):
    x, *affine = case.inputs
    y, _ = layer_norm.forward(*case.inputs, **case.static)
    for *place, c in np.ndindex(x.shape):
        row = [float(v) for v in x[tuple(place)]]
        mean = sum(row) / len(row)
        variance = sum(v * v for v in row) / len(row) - mean * mean
        xhat = (row[c] - mean) / (variance + case.static["eps"]) ** 0.5
        close(y[(*place, c)], affine[0][c] * xhat + affine[1][c] if affine else xhat, 1e-9)


def test_gradient_of_a_constant_row():
    check_gradient(layer_norm, Case(np.array([[1.1, 1.1], [0.3, 0.3]])), step=1e-8)
    check_gradient(layer_norm, Case(np.full((1, 3), 0.7), np.arange(3.0), np.ones(3)), step=1e-8)


def test_constant_rows_become_the_bias():
    bias = np.array([1.0, 2.0, 3.0])
    close(layer_norm.forward(np.full((2, 3), 0.7), np.ones(3), bias)[0], [bias, bias])


def test_wrong_shapes():
    with pytest.raises(ShapeError, match="both gain and bias, or neither"):
        layer_norm.forward(np.ones((2, 3)), np.ones(3))
    with pytest.raises(ShapeError, match=r"gain and bias must be \(3,\)"):
        layer_norm.forward(np.ones((2, 3)), np.ones(2), np.ones(2))
    with pytest.raises(ShapeError, match=r"gain and bias must be \(3,\)"):
        layer_norm.forward(np.ones((2, 3)), np.ones(3), np.ones((1, 3)))
