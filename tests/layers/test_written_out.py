"""Layers against the model written out: the same first numbers and the same bits after training."""

import numpy as np
import pytest

import byhand as bh
from byhand.model import declared
from layers import written_out
from model_cases import batch, every_setting, parameters, setting_name, swept


@pytest.mark.parametrize("config", swept())
def test_initial_numbers(config):
    for dtype in ("float32", "float64"):
        for name, p in bh.TinyGPT(config, seed=7, dtype=dtype).parameters().items():
            expected = written_out.initial(name, p.shape, config.n_layers, 7, dtype)
            assert (p.dtype, p.data.tobytes()) == (expected.dtype, expected.tobytes()), name


@pytest.mark.parametrize("config", swept())
def test_the_layers_say_of_each_parameter_what_the_number_of_its_axes_says(config):
    """AdamW's `decay="matrices"` goes by the axes."""
    assert all(p.decays == (len(p.shape) >= 2) for p in declared(config).values())


@pytest.mark.parametrize("config", every_setting()[::9], ids=setting_name)
def test_some_steps_give_the_same_bits(config):
    tokens, targets = batch(config)
    by_layers, by_hand = (bh.TinyGPT(config, arrays=parameters(config)) for _ in range(2))
    p = by_hand.parameters()
    optimizers = bh.AdamW(lr=0.02, decay="matrices"), bh.AdamW(lr=0.02, decay="matrices")
    for _ in range(6):
        losses = by_layers.loss(tokens, targets), written_out.loss(config, p, tokens, targets)
        assert losses[0].item() == losses[1].item()
        for model, loss, optimizer in zip((by_layers, by_hand), losses, optimizers, strict=True):
            model.zero_grad()
            loss.backward()
            optimizer.step(model.parameters())
    for name, q in by_layers.parameters().items():
        np.testing.assert_array_equal(q.data, p[name].data, err_msg=name)
