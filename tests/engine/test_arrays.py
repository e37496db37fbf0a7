"""The functions that the array API lacks, held against Python's own."""

import math

import numpy as np
import pytest

from byhand.engine.arrays import erf, sigmoid

EVERYWHERE = np.concatenate([np.linspace(-8, 8, 20001), -np.logspace(-300, 300, 1201), np.logspace(-300, 300, 1201)])


def test_erf_is_right_to_the_last_digits():
    expected = np.array([math.erf(v) for v in EVERYWHERE])
    np.testing.assert_allclose(erf(EVERYWHERE), expected, rtol=1e-15, atol=0)


def test_erf_in_float32():
    x = np.linspace(-8, 8, 20001, dtype=np.float32)
    found = erf(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [math.erf(v) for v in x], rtol=3e-7, atol=0)


def test_erf_at_the_ends():
    assert erf(np.array([0.0, -0.0, math.inf, -math.inf])).tolist() == [0, 0, 1, -1]
    assert np.isnan(erf(np.array([math.nan]))).all()
    assert erf(np.asarray(0.5)) == pytest.approx(math.erf(0.5), rel=1e-15)


def test_sigmoid_is_right_to_the_last_digits():
    x = np.linspace(-700, 700, 2001)
    expected = [1 / (1 + math.exp(-v)) for v in x]
    np.testing.assert_allclose(sigmoid(x), expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sigmoid_at_the_ends(dtype):
    found = sigmoid(np.array([-math.inf, -1e30, 0, 1e30, math.inf], dtype))
    assert (found.dtype, found.tolist()) == (dtype, [0, 0, 0.5, 1, 1])
    assert np.isnan(sigmoid(np.array([math.nan], dtype))).all()
