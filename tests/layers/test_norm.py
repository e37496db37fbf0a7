from dataclasses import dataclass

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Tensor
from byhand.equations import layer_norm, mul
from byhand.layers.norm import NORMS, LayerNorm, norm_of
from byhand.layers.parameter import Parameter
from byhand.model import declared
from byhand.optim import Optimizer
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose
from model_cases import batch

CONFIG = bh.ModelConfig(vocab_size=7, seq_len=5, d_model=4, n_layers=2, n_heads=2)


def test_gain_and_bias_are_the_affine_norms():
    x = np.arange(8.0).reshape(2, 4) ** 2
    plain, affine = (LayerNorm(bh.ModelConfig(d_model=4, norm_affine=yes)) for yes in (False, True))
    assert plain.parameters() == {}
    assert list(affine.parameters()) == ["gain", "bias"]
    p = {"gain": np.array([1.0, 2, 3, 4]), "bias": np.array([4.0, 3, 2, 1])}
    eps = bh.ModelConfig.norm_eps
    np.testing.assert_array_equal(plain.apply({}, x, "y").data, layer_norm(x, eps=eps).data)
    np.testing.assert_array_equal(affine.apply(p, x, "y").data, layer_norm(x, p["gain"], p["bias"], eps=eps).data)
    assert affine.apply(p, x, "ln_1").name == "ln_1"


@dataclass(frozen=True)
class Scaled:
    """A norm of a test: one learned factor for each column."""

    config: bh.ModelConfig

    def parameters(self):
        return {"scale": Parameter((1, self.config.d_model), mean=1.0, std=0.5, decays=True)}

    def apply(self, p, x, name):
        return mul(x, p["scale"], name=name)


def test_a_norm_that_is_registered_names_its_parameters_and_trains(monkeypatch):
    monkeypatch.setitem(NORMS, "layer", Scaled)
    assert norm_of(CONFIG) == Scaled(CONFIG)
    model, optimizer, (tokens, targets) = bh.TinyGPT(CONFIG), bh.AdamW(lr=0.01), batch(CONFIG)
    norms = {name: p for name, p in model.parameters().items() if name.endswith("scale")}
    assert list(norms) == [
        f"{n}.scale" for n in ("blocks.0.ln_1", "blocks.0.ln_2", "blocks.1.ln_1", "blocks.1.ln_2", "ln_f")
    ]
    assert all(0 < p.data.std() < 2 and p.shape == (1, 4) for p in norms.values())
    assert model.forward_logits(tokens).shape == (2, 5, 7)
    before = {name: p.data for name, p in norms.items()}
    losses = []
    for _ in range(30):
        model.zero_grad()
        loss = model.loss(tokens, targets)
        loss.backward()
        optimizer.step(model.parameters())
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.1
    assert all((p.data != before[name]).any() for name, p in norms.items())


@pytest.mark.parametrize("affine", [False, True])
def test_the_config_decides_its_width_and_gain(affine):
    norm = norm_of(bh.ModelConfig(d_model=6, norm_affine=affine))
    assert isinstance(norm, LayerNorm)
    assert {name: p.shape for name, p in norm.parameters().items()} == (
        {"gain": (6,), "bias": (6,)} if affine else {}
    )


def test_the_result_is_a_tensor_of_the_graph():
    y = LayerNorm(bh.ModelConfig(d_model=2)).apply({}, Tensor(np.array([[1.0, 3.0]]), requires_grad=True), "y")
    assert y.node is not None
    assert y.node.equation is layer_norm


@dataclass(frozen=True)
class Undecayed(Scaled):
    """The same, but its parameter, which has two axes, does not decay."""

    def parameters(self):
        return {"scale": Parameter((1, self.config.d_model), mean=1.0, std=0.5)}


@pytest.mark.parametrize("session", ["numpy", "loops"])
def test_what_a_layer_declares_decides_what_decays(monkeypatch, session):
    if session == "loops":
        pytest.importorskip("numba", reason="the loops runtime needs numba (extra `fast`)")
    monkeypatch.setitem(NORMS, "layer", Undecayed)
    after = {}
    for weight_decay in (0.0, 0.5):
        settings = bh.OptimConfig(lr=0.01, weight_decay=weight_decay, decay="matrices")
        model, optimizer = bh.TinyGPT(CONFIG), Optimizer(settings, declared(CONFIG))
        request = Request("train", CONFIG, session, threads=1)
        choose(request).runtime.session(model, optimizer, request).step([batch(CONFIG)], 1.0)
        after[weight_decay] = {name: p.data.copy() for name, p in model.parameters().items()}
    same = {name for name in after[0.0] if np.array_equal(after[0.0][name], after[0.5][name])}
    assert {"blocks.0.ln_1.scale", "ln_f.scale", "blocks.0.mlp.b_fc"} <= same
    assert not {"wte", "blocks.0.attn.w_qkv", "lm_head.w"} & same
