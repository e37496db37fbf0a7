"""Slopes: the same as one vjp for each element gives, without that many vjps."""

from contextlib import contextmanager

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Composite, Equation, Symbol, Tensor, registry
from byhand.engine.terms import number
from byhand.tracing.slopes import slopes
from byhand.tracing.trace import Trace
from model_cases import batch, parameters, setting_name, stored_settings

RNG = np.random.default_rng(8)


@contextmanager
def counted():
    """Count the vjp calls of every equation."""
    calls, kept = [], {name: e.vjp for name, e in registry.items() if not isinstance(e, Composite)}
    try:
        for name, vjp in kept.items():
            object.__setattr__(
                registry[name], "vjp", lambda *a, _name=name, _vjp=vjp, **k: (calls.append(_name), _vjp(*a, **k))[1]
            )
        yield calls
    finally:
        for name, vjp in kept.items():
            object.__setattr__(registry[name], "vjp", vjp)


def by_vjps(step, slots, index):
    """Return every slope that is not zero, by a vjp for each element of the results."""
    node, found = step.node, {}
    for which, (shape, _) in enumerate(node.results):
        for place in np.ndindex(*shape):
            alone = [np.zeros(s, d) for s, d in node.results]
            alone[which][place] = 1.0
            d_inputs = node.equation.vjp(node.saved, alone[0] if len(alone) == 1 else tuple(alone), **node.static)
            found[which, place] = sum(float(d_inputs[k][index]) for k in slots)
    return {where: slope for where, slope in found.items() if slope and step.d_results[where[0]][where[1]]}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("config", stored_settings(), ids=setting_name)
def test_they_are_the_vjps_slopes(config, dtype):
    model = bh.TinyGPT(config, arrays=parameters(config, dtype))
    gradients = Trace.of(lambda: model.loss(*batch(config))).backward()
    for step in gradients.steps:
        for tensor in {id(t): t for t in step.node.inputs if t.requires_grad}.values():
            slots = [k for k, t in enumerate(step.node.inputs) if t is tensor]
            index = tuple(int(RNG.integers(n)) for n in tensor.shape)
            found = {(which, place): float(slope) for which, place, slope in slopes(step, slots, index) if slope}
            expected = by_vjps(step, slots, index)
            assert set(found) == set(expected), step.node.name
            eps = 16 * float(np.finfo(dtype).eps)
            for where, slope in expected.items():
                assert found[where] == pytest.approx(slope, rel=eps, abs=eps), (step.node.name, where)


def vjps(vocab_size, seq_len, width):
    """Return how many vjps the contributions to one element of every tensor take, by the tensor's name."""
    config = bh.ModelConfig(
        vocab_size=vocab_size, seq_len=seq_len, d_model=width, n_layers=1, n_heads=2, norm_affine=True
    )
    model = bh.TinyGPT(config, seed=4)
    tokens = np.arange(seq_len + 1)[None] % 7
    gradients = Trace.of(lambda: model.loss(tokens[:, :-1], tokens[:, 1:])).backward()
    found = {}
    for name, d in gradients.by_name.items():
        index = tuple(min(1, n - 1) for n in d.shape)
        with counted() as calls:
            contributions = list(gradients.contributions(name, index))
        found[name] = len([call for call in calls if call != "softmax"])  # causal_softmax calls it
        assert contributions or name == "loss"
        total = sum(c.value for c in contributions)
        if name != "loss":
            scale = sum(abs(c.value) for c in contributions)
            assert total == pytest.approx(float(d[index]), rel=0, abs=1e-5 * scale), name
    return found


def test_their_number_of_vjps_grows_with_nothing():
    few = vjps(300, 6, 8)
    assert few == vjps(3000, 6, 8), "not with the vocabulary"
    assert max(few.values()) == max(vjps(300, 40, 32).values()) == 2, "one for each of two uses"
    assert few["lm_head.w"] == few["ln_f"] == few["ln_f.gain"] == 0, "forward says it"


@contextmanager
def toy(forward, vjp):
    """An equation of which nothing is known but its two halves."""
    x, y = Symbol("x", "x", "(...)", "any array"), Symbol("y", "y", "(...)", "any array")
    equation = Equation("toy", "Toy", "y", "d_y", (x,), y, forward, vjp, lambda *a, **k: number(0))
    try:
        yield equation
    finally:
        del registry["toy"]


def centred_square(x):
    """Each column's square less its mean over the rows: rows do not stand alone."""
    return x * x - (x * x).mean(axis=0), (x,)


TOYS = {
    "nothing cheap applies": (centred_square, lambda saved, d: (2 * saved[0] * (d - d.mean(axis=0)),), 3),
    "saturated, so flat nearby": (
        lambda x: (np.tanh(x + 40) + np.tanh(x.sum(axis=-1, keepdims=True)), (x,)),
        lambda saved, d: (
            d * (1 - np.tanh(saved[0] + 40) ** 2)
            + (d.sum(-1) * (1 - np.tanh(saved[0].sum(axis=-1)) ** 2))[..., None],
        ),
        1,
    ),
    "almost affine": (
        lambda x: (x.sum(axis=0) + 1e-6 * np.tanh(x.sum(axis=0) + 0 * x), (x,)),
        lambda saved, d: (
            d.sum(axis=0) * (1 + 1e-6 * (1 - np.tanh(saved[0].sum(axis=0)) ** 2)) + 0 * saved[0],), 3),
    "affine": (lambda x: (x + x.sum(axis=0), (x,)), lambda saved, d: (d + d.sum(axis=0),), 0),
    "affine beside a large constant": (lambda x: (1e6 + x.sum() * np.ones((5,)), (x,)), lambda saved, d: (
        d.sum() * np.ones_like(saved[0]),), 0),
}  # fmt: skip


@pytest.mark.parametrize("kind", TOYS)
def test_any_equation_has_slopes(kind):
    forward, vjp, expected_calls = TOYS[kind]
    x = Tensor(RNG.standard_normal((3, 4)), requires_grad=True, name="x")
    with toy(forward, vjp) as equation:
        trace = Trace.of(lambda: equation(x, name="y"))
        (step,) = trace.backward(RNG.standard_normal(trace.result.shape)).steps
        with counted() as calls:
            found = {(which, place): slope for which, place, slope in slopes(step, [0], (1, 2))}
        expected = by_vjps(step, [0], (1, 2))
        assert len(calls) == expected_calls
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_a_tensor_used_twice_by_one_equation():
    x = Tensor(np.asarray([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True, name="x")
    trace = Trace.of(lambda: x @ x)
    gradients = trace.backward()
    (step,) = gradients.steps
    found = {place: float(slope) for _, place, slope in slopes(step, [0, 1], (0, 1))}
    assert found == {(0, 0): 3.0, (0, 1): 5.0, (1, 1): 3.0}
    assert sum(c.value for c in gradients.contributions("x", (0, 1))) == float(gradients.by_name["x"][0, 1])
