"""What an answer costs: a value walks back through nothing, a gradient's arithmetic computes no equation again."""

from contextlib import contextmanager

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Composite, registry
from byhand.tracing import Questions
from model_cases import batch, parameters, setting_name, stored_settings


@contextmanager
def counted():
    """Collect the names of equations whose halves are called."""
    halves = {name: (e.forward, e.vjp) for name, e in registry.items() if not isinstance(e, Composite)}
    calls = []

    def spy(name, half):
        return lambda *args, **static: (calls.append(name), half(*args, **static))[1]

    try:
        for name, (forward, vjp) in halves.items():
            object.__setattr__(registry[name], "forward", spy(f"{name} forward", forward))
            object.__setattr__(registry[name], "vjp", spy(f"{name} vjp", vjp))
        yield calls
    finally:
        for name, (forward, vjp) in halves.items():
            object.__setattr__(registry[name], "forward", forward)
            object.__setattr__(registry[name], "vjp", vjp)


@pytest.mark.parametrize("config", stored_settings(), ids=setting_name)
def test_an_answer_computes_no_equation_again(config):
    questions = Questions(bh.TinyGPT(config, arrays=parameters(config)), *batch(config))
    rng = np.random.default_rng(5)

    def ask(name, gradient):
        index = tuple(int(rng.integers(n)) for n in questions.trace.tensor(name).shape)
        assert questions.answer(name, index, gradient).as_json()

    with counted() as calls:
        for name in (*questions.model.parameters(), *questions.trace.made):
            ask(name, gradient=False)
    assert not calls
    assert "gradients" not in vars(questions), "a value needs no backward pass"
    questions.gradients  # noqa: B018 - walks back
    with counted() as calls:
        for name in questions.gradients.by_name:
            ask(name, gradient=True)
    assert set(calls) <= {"relu forward", "relu vjp"}, "ReLU says no arithmetic of its gradient"
