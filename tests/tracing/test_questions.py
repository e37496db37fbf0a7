"""What an answer costs and holds: a value walks back through nothing, a gradient's arithmetic computes no equation
again, and each number that was read is an element of an array that the answer has beside its name."""

from contextlib import contextmanager

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Composite, registry
from byhand.engine.terms import leaves
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


@pytest.mark.parametrize("config", stored_settings(), ids=setting_name)
def test_every_number_that_was_read_is_an_element_of_an_array_of_the_answer(config):
    questions = Questions(bh.TinyGPT(config, arrays=parameters(config)), *batch(config), max_grad_norm=0.1)
    rng = np.random.default_rng(6)
    asked = [(name, False) for name in questions.names()] + [(name, True) for name in questions.gradients.by_name]
    for name, gradient in asked:
        index = tuple(int(rng.integers(n)) for n in questions.array(name, gradient).shape)
        answer = questions.answer(name, index, gradient)
        assert len(answer.arrays) == len(answer.origins)
        for term in (answer.term, *answer.beside):
            for which, place, value in (
                ((*leaf.source, leaf.value) for leaf in leaves(term) if leaf.source) if term else ()
            ):
                assert value == float(answer.arrays[which][place]), answer.target
