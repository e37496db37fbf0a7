import numpy as np
import pytest

import byhand as bh
from byhand.optim import AdamW
from model_cases import ADAMW, STEPS, batch, every_setting, parameters, setting_name
from oracle import torch_reference

pytestmark = pytest.mark.oracle
EXACT = 1e-10


def close(actual, expected):
    """Relative to the largest number of the array, which for a gradient that vanishes is 1."""
    scale = max(float(np.abs(expected).max()), 1.0)
    assert float(np.abs(np.asarray(actual) - expected).max()) <= EXACT * scale


@pytest.mark.parametrize("config", every_setting(), ids=setting_name)
def test_loss_and_every_gradient(config):
    arrays, (tokens, targets) = parameters(config), batch(config)
    expected_loss, expected = torch_reference.gradients(arrays, tokens, targets, config)
    model = bh.TinyGPT(config, arrays=arrays)
    loss = model.loss(tokens, targets)
    loss.backward()
    close(loss.item(), expected_loss)
    gradients = {name: p.grad for name, p in model.parameters().items()}
    assert set(gradients) == set(expected)
    for name, gradient in gradients.items():
        close(gradient, expected[name])


@pytest.mark.parametrize("config", every_setting(), ids=setting_name)
def test_ten_steps_of_adamw(config):
    arrays, (tokens, targets) = parameters(config), batch(config)
    expected = torch_reference.loss_curve(arrays, tokens, targets, config, STEPS, **ADAMW)
    model, optimizer, losses = bh.TinyGPT(config, arrays=arrays), AdamW(**ADAMW), []
    for _ in range(STEPS):
        model.zero_grad()
        loss = model.loss(tokens, targets)
        loss.backward()
        optimizer.step(model.parameters())
        losses.append(loss.item())
    close(losses, np.array(expected))
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("config", every_setting()[::17], ids=setting_name)
def test_float32_is_close_to_float64(config):
    tokens, targets = batch(config)
    _, expected = torch_reference.gradients(parameters(config), tokens, targets, config)
    model = bh.TinyGPT(config, arrays=parameters(config, np.float32))
    model.loss(tokens, targets).backward()
    for name, p in model.parameters().items():
        assert p.grad.dtype == np.float32
        np.testing.assert_allclose(p.grad, expected[name], rtol=1e-3, atol=1e-5)
