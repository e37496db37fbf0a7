"""Functions that the array API lacks, traced by JAX."""

import jax
import numpy as np
import pytest

from byhand.engine.arrays import erf, sigmoid


@pytest.mark.parametrize("function", [erf, sigmoid])
def test_jax_traces_it(function):
    x = np.linspace(-8, 8, 1001, dtype=np.float32)
    found = jax.jit(function)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, function(x), rtol=1e-5, atol=1e-7)
