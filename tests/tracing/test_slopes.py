"""An equation that says no arithmetic of its gradients is explained by its slopes, one vjp each."""

from contextlib import contextmanager

import numpy as np
import pytest

from byhand.engine import Equation, Symbol, Tensor, registry
from byhand.engine.terms import number
from byhand.tracing.slopes import slopes
from byhand.tracing.trace import Trace

RNG = np.random.default_rng(8)


def by_vjps(step, index):
    """Return every slope that is not zero, by a vjp for each element of the result."""
    node, found = step.node, {}
    ((shape, dtype),) = node.results
    for place in np.ndindex(*shape):
        alone = np.zeros(shape, dtype)
        alone[place] = 1.0
        found[0, place] = float(node.equation.vjp(node.saved, alone, **node.static)[0][index])
    return {where: slope for where, slope in found.items() if slope and step.d_results[0][where[1]]}


@contextmanager
def toy(forward, vjp):
    """An equation known only by its two halves."""
    x, y = Symbol("x", "x", "(...)", "any array"), Symbol("y", "y", "(...)", "any array")
    equation = Equation("toy", "Toy", "y", "d_y", (x,), y, forward, vjp, lambda *a, **k: number(0))
    try:
        yield equation
    finally:
        del registry["toy"]


def centred_square(x):
    """Each column's square less its mean over the rows: rows depend on each other."""
    return x * x - (x * x).mean(axis=0), (x,)


TOYS = {
    "columns that depend on each other": (centred_square, lambda saved, d: (2 * saved[0] * (d - d.mean(axis=0)),)),
    "saturated, so flat nearby": (
        lambda x: (np.tanh(x + 40) + np.tanh(x.sum(axis=-1, keepdims=True)), (x,)),
        lambda saved, d: (
            d * (1 - np.tanh(saved[0] + 40) ** 2)
            + (d.sum(-1) * (1 - np.tanh(saved[0].sum(axis=-1)) ** 2))[..., None],
        ),
    ),
    "affine": (lambda x: (x + x.sum(axis=0), (x,)), lambda saved, d: (d + d.sum(axis=0),)),
    "affine beside a large constant": (
        lambda x: (1e6 + x.sum() * np.ones((5,)), (x,)), lambda saved, d: (d.sum() * np.ones_like(saved[0]),)
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", TOYS)
def test_any_equation_has_slopes(kind):
    forward, vjp = TOYS[kind]
    x = Tensor(RNG.standard_normal((3, 4)), requires_grad=True, name="x")
    with toy(forward, vjp) as equation:
        gradients = Trace.of(lambda: equation(x, name="y")).backward(
            RNG.standard_normal(forward(np.zeros((3, 4)))[0].shape)
        )
        (step,) = gradients.steps
        found = {(which, place): slope for which, place, slope in slopes(step, 0, (1, 2))}
        assert found == pytest.approx(by_vjps(step, (1, 2)), rel=1e-12, abs=1e-15)
        answer = gradients.answer("x", (1, 2))
        assert answer.term.value == pytest.approx(answer.value, rel=1e-12, abs=1e-15)
        labels = [[leaf.label for leaf in part.parts] for part in answer.term.parts[0].parts]
        assert labels[0][1] == f"{labels[0][0]}/∂x[1,2]"
