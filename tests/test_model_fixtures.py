"""Hold whole models against the numbers that PyTorch gave, without PyTorch: see `oracle/make_fixtures.py`."""

import json
from pathlib import Path

import numpy as np
import pytest

import byhand as bh
from byhand.config import from_dict
from model_cases import ADAMW, STEPS, parameters, setting_name, stored_settings

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.json"))


@pytest.fixture(params=FIXTURES, ids=lambda path: path.stem)
def stored(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


@pytest.fixture
def model(stored):
    config = from_dict(bh.ModelConfig, stored["config"])
    return bh.TinyGPT(config, arrays=parameters(config))


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def test_every_stored_setting_has_its_file():
    assert [path.stem for path in FIXTURES] == sorted(map(setting_name, stored_settings()))


def test_logits(model, stored):
    close(model.forward_logits(stored["tokens"]).data, stored["logits"])


def test_loss_and_every_gradient(model, stored):
    loss = model.loss(stored["tokens"], stored["targets"])
    loss.backward()
    close(loss.item(), stored["loss"])
    gradients = {name: p.grad for name, p in model.parameters().items()}
    assert set(gradients) == set(stored["gradients"])
    for name, gradient in gradients.items():
        close(gradient, stored["gradients"][name])


def test_no_gradient_is_zero_throughout(model, stored):
    """A fixture of zeros would prove nothing."""
    assert all(np.any(gradient) for gradient in stored["gradients"].values())


def test_ten_steps_of_adamw(model, stored):
    optimizer, losses = bh.AdamW(**ADAMW), []
    for _ in range(STEPS):
        model.zero_grad()
        loss = model.loss(stored["tokens"], stored["targets"])
        loss.backward()
        optimizer.step(model.parameters())
        losses.append(loss.item())
    close(losses, stored["loss_curve"])
