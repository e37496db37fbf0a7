import dataclasses

import numpy as np
import pytest

import byhand as bh
from byhand.model import declared
from byhand.optim import AdamW
from model_cases import ADAMW, STEPS, batch, every_setting, parameters, setting_name, swept
from oracle import torch_reference
from oracle.torch_reference import torch

pytestmark = pytest.mark.oracle
EXACT = 1e-10


def close(actual, expected):
    """Relative to the largest number of the array, which for a gradient that vanishes is 1."""
    scale = max(float(np.abs(expected).max()), 1.0)
    assert float(np.abs(np.asarray(actual) - expected).max()) <= EXACT * scale


@pytest.mark.parametrize("config", swept())
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


@pytest.mark.parametrize("config", swept())
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


ODD = bh.ModelConfig(vocab_size=5, seq_len=7, d_model=6, n_layers=3, n_heads=3, d_ff=5, norm_affine=True)


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("position", ["pre", "post"])
def test_odd_shapes_and_short_windows(position, rows, length):
    config = dataclasses.replace(ODD, norm_position=position)
    arrays, (tokens, targets) = parameters(config), batch(config, rows)
    tokens, targets = tokens[:, :length], targets[:, :length]
    expected_loss, expected = torch_reference.gradients(arrays, tokens, targets, config)
    model = bh.TinyGPT(config, arrays=arrays)
    loss = model.loss(tokens, targets)
    loss.backward()
    close(loss.item(), expected_loss)
    for name, p in model.parameters().items():
        close(p.grad, expected[name])


def test_clipping_and_decay_of_matrices_only():
    """Torch divides by norm + 1e-6 where we divide by the norm, so the clipped curve agrees to that."""
    arrays, (tokens, targets) = parameters(ODD), batch(ODD)
    theirs = torch_reference.as_parameters(arrays)
    groups = [
        {"params": [p for p in theirs.values() if p.ndim >= 2], "weight_decay": 0.5},
        {"params": [p for p in theirs.values() if p.ndim < 2], "weight_decay": 0.0},
    ]
    their_optimizer = torch.optim.AdamW(groups, lr=0.02, betas=(0.9, 0.99))
    model = bh.TinyGPT(ODD, arrays=arrays)
    optimizer = AdamW(lr=0.02, betas=(0.9, 0.99), weight_decay=0.5, decay="matrices")
    for _ in range(STEPS):
        their_optimizer.zero_grad()
        their_loss = torch_reference.loss(theirs, tokens, targets, ODD)
        their_loss.backward()
        their_norm = torch.nn.utils.clip_grad_norm_(theirs.values(), 0.1)
        their_optimizer.step()

        model.zero_grad()
        loss = model.loss(tokens, targets)
        loss.backward()
        norm = optimizer.clipped_step(model.parameters(), 0.1)
        assert loss.item() == pytest.approx(their_loss.item(), rel=1e-6)
        assert norm == pytest.approx(their_norm.item(), rel=1e-5)
        assert norm > 0.1
    for name, p in model.parameters().items():
        np.testing.assert_allclose(p.data, theirs[name].detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("config", every_setting()[1::23], ids=setting_name)
def test_gradients_of_adapters(config):
    adapted = dataclasses.replace(config, lora=2, lora_alpha=3.0)
    arrays, (tokens, targets) = parameters(adapted), batch(config)
    p = torch_reference.as_parameters(arrays)
    merged = {name: w + 1.5 * p[f"{name}_a"] @ p[f"{name}_b"] if f"{name}_a" in p else w for name, w in p.items()}
    expected = torch_reference.loss(merged, tokens, targets, config)
    expected.backward()
    model = bh.TinyGPT(adapted, arrays=arrays)
    loss = model.loss(tokens, targets)
    loss.backward()
    close(loss.item(), expected.item())
    trained = [name for name, parameter in declared(adapted).items() if parameter.trained]
    assert len(trained) == 2 * 4 * config.n_layers
    for name in trained:
        close(model.parameters()[name].grad, p[name].grad.numpy())
