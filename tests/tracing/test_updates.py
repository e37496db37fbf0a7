"""The trace of an update is what the optimizer makes at its next step."""

import numpy as np
import pytest

from byhand.engine import Tensor
from byhand.optim import AdamW, Muon
from byhand.tracing import update_trace
from byhand.tracing.updates import Clipping, ParameterUpdate


def parameters(dtype=np.float64):
    rng = np.random.default_rng(0)
    tensors = {
        "w": Tensor(rng.standard_normal((2, 3)).astype(dtype)),
        "b": Tensor(rng.standard_normal(3).astype(dtype)),
    }
    return tensors


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: AdamW(lr=0.1, decay="matrices", scales={"b": 0.5}),
        lambda: Muon({"w": 1}, lr=0.1, weight_decay=0.3, scales={"w": 4.0}),
        lambda: Muon({"w": 3}, momentum=0.8),
    ],
)
def test_the_trace_of_an_update_is_what_the_next_step_makes(optimizer, dtype):
    rng, made, p = np.random.default_rng(4), optimizer(), parameters(dtype)
    for _ in range(3):
        for tensor in p.values():
            tensor.grad = rng.standard_normal(tensor.shape).astype(dtype)
        m = made.moments["m"]
        before = {name: (t.data, m.get(name)) for name, t in p.items()}
        traces = {name: update_trace(made, name, tensor, tensor.grad) for name, tensor in p.items()}
        assert all(before[n][0] is t.data and before[n][1] is m.get(n) for n, t in p.items()), "nothing changed"
        made.step(p)
        for name, tensor in p.items():
            values, kept = traces[name].values, {k: a[name] for k, a in made.moments.items() if name in a}
            expected = {f"{name}.{letter}": array for letter, array in {"theta": tensor.data, **kept}.items()}
            assert list(traces[name].made) == list(expected)
            assert np.array_equal(values[name], before[name][0])
            assert np.array_equal(values[f"{name}.gradient"], tensor.grad)
            index = tuple(int(rng.integers(-n, n)) for n in tensor.shape)
            for result, array in expected.items():
                assert values[result].tobytes() == array.tobytes()
                term = traces[name].terms(result, index)
                assert term.value == pytest.approx(float(array[index]), rel=1e-5 if dtype is np.float32 else 1e-12)


def test_the_clipped_gradient_stands_beside_an_update_that_does_not_name_it():
    tensor, gradient = parameters()["w"], np.full((2, 3), 2.0)
    update = ParameterUpdate("w", tensor, gradient, Clipping(norm=4.0, limit=1.0), Muon({"w": 1}))
    values = {term.label: term.value for term in update.answer("theta", (0, 1)).labelled}
    assert values["g[0,1]"] == 0.5


@pytest.mark.parametrize("optimizer", [AdamW(lr=1e-9), Muon({"w": 1}, lr=1e-9)], ids=["adamw", "muon"])
def test_a_change_smaller_than_the_parameters_digits_is_told(optimizer):
    """In float32 the parameter would not change."""
    tensor, gradient = parameters(np.float32)["w"], np.ones((2, 3), np.float32)
    update = ParameterUpdate("w", tensor, gradient, Clipping(norm=1.0, limit=0.0), optimizer)
    change = update.array("update")
    assert change.dtype == np.float64
    assert (np.abs(change) > 1e-11).all()
    assert update.answer("update", (0, 1)).value == pytest.approx(change[0, 1], rel=1e-6)
