"""A central difference replays in float64 what depends on an element."""

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Tensor
from byhand.equations import gelu, linear
from byhand.tracing.differences import STEP, recomputed
from byhand.tracing.trace import Trace
from model_cases import batch, drawn_config, parameters


@pytest.mark.parametrize(("seed", "dtype"), [(seed, (np.float64, np.float32)[seed % 2]) for seed in range(8)])
def test_it_is_the_gradient_of_everything_that_has_one(seed, dtype):
    config = drawn_config(seed)
    model = bh.TinyGPT(config, arrays=parameters(config, dtype))
    gradients, rng = Trace.of(lambda: model.loss(*batch(config))).backward(), np.random.default_rng(seed)
    for name, d in gradients.by_name.items():
        index = tuple(int(rng.integers(-n, n)) for n in d.shape)
        # One of the drawn models loses four of float32's digits, how many depends on the processor's sums.
        rel, near = (1e-5, 1e-7) if dtype is np.float64 else (2e-3, 2e-5)
        close = pytest.approx(float(d[index]), rel=rel, abs=near)
        assert gradients.central_difference(name, index) == close, name


@pytest.mark.parametrize("seed", range(4))
def test_a_parameter_moved_is_the_same_as_a_model_made_with_it(seed):
    """Bit for bit."""
    config, rng = drawn_config(seed), np.random.default_rng(seed)
    arrays = parameters(config, np.float64)
    model = bh.TinyGPT(config, arrays=arrays)
    trace = Trace.of(lambda: model.loss(*batch(config)))
    for name in rng.permutation(list(arrays))[:5]:
        index = tuple(int(rng.integers(n)) for n in arrays[name].shape)
        moved = {**arrays, name: arrays[name].copy()}
        moved[name][index] += STEP
        with bh.no_grad():
            expected = bh.TinyGPT(config, arrays=moved).loss(*batch(config)).item()
        assert float(recomputed(trace, name, index, STEP)) == expected


def test_of_several_results_with_their_cotangents():
    rng = np.random.default_rng(5)
    x, w = (Tensor(rng.standard_normal((3, 3)), requires_grad=True, name=name) for name in "xw")
    before = x.data.copy()
    gradients = Trace.of(lambda: gelu(linear(x, w, name="pre"), name="act")).backward(rng.standard_normal((3, 3)))
    for name in ("x", "w", "pre", "act"):
        expected = pytest.approx(float(gradients.by_name[name][1, 2]), rel=1e-7, abs=1e-9)
        assert gradients.central_difference(name, (1, 2)) == expected
    assert np.array_equal(x.data, before)
