"""Functions that JAX traces: those that the array API lacks, and attention by a kernel."""

from inspect import signature

import jax
import numpy as np
import pytest

from byhand.engine.arrays import erf, sigmoid
from byhand.equations.causal_self_attention import causal_self_attention
from byhand.runtimes.xla.applying import Applying


@pytest.mark.parametrize("function", [erf, sigmoid])
def test_jax_traces_it(function):
    x = np.linspace(-8, 8, 1001, dtype=np.float32)
    found = jax.jit(function)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, function(x), rtol=1e-5, atol=1e-7)


def test_attention_by_a_kernel_knows_each_setting_of_the_composition():
    """It names them, so a setting that it does not know is an error; no test of losses has to think of each."""
    of_kernel = signature(Applying._attention).parameters.values()
    assert all(p.kind != p.VAR_KEYWORD for p in of_kernel)
    assert {p.name for p in of_kernel} - {"self"} == set(signature(causal_self_attention.compose).parameters)
