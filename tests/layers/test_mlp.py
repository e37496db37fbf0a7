from inspect import getsource

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Equation, Symbol, registry
from byhand.engine.arrays import namespace
from byhand.engine.equation import with_role
from byhand.engine.terms import element, product
from byhand.equations import gelu, linear, relu
from byhand.errors import ConfigError
from byhand.generation import Sampling, generate
from byhand.layers.mlp import MLP
from byhand.layers.parameter import residual_std
from byhand.runs import checkpoint
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import runtimes
from model_cases import batch


def squared_relu():
    """Make and register max(x, 0)^2."""

    def forward(x):
        positive = namespace(x).where(x > 0, x, 0 * x)
        return positive * positive, (positive,)

    def terms(index, inputs, result):
        return product([element(inputs, 0, index, "x")] * 2)

    return Equation(
        name="squared_relu", title="", latex="", derivative="", role="activation", forward=forward,
        vjp=lambda saved, d: (2 * saved[0] * d,), terms=terms,
        inputs=(Symbol("x", "x", "(...)", ""),), result=Symbol("y", "y", "(...)", ""),
    )  # fmt: skip


def bilinear():
    """Make and register the gate g u, which no kernel knows."""

    def terms(index, inputs, result):
        return product((element(inputs, 0, index, "g"), element(inputs, 1, index, "u")))

    return Equation(
        name="bilinear", title="", latex="", derivative="", role="gate", forward=lambda g, u: (g * u, (g, u)),
        vjp=lambda saved, d: (d * saved[1], d * saved[0]), terms=terms,
        inputs=(Symbol("gate", "g", "(...)", ""), Symbol("up", "u", "(...)", "")),
        result=Symbol("y", "y", "(...)", ""),
    )  # fmt: skip


@pytest.fixture
def toy():
    equation = squared_relu()
    yield equation
    registry.pop(equation.name)


@pytest.fixture(params=[squared_relu, bilinear], ids=lambda make: make.__name__)
def either(request):
    """An activation, or a gate, that is registered for one test."""
    equation = request.param()
    yield equation
    registry.pop(equation.name)


def made(activation="gelu"):
    mlp = MLP(bh.ModelConfig(d_model=4, d_ff=3, n_layers=2, activation=activation))
    rng = np.random.default_rng(0)
    return mlp, {name: rng.standard_normal(p.shape) for name, p in mlp.parameters().items()}


def test_parameters():
    assert {name: (p.shape, p.std) for name, p in made()[0].parameters().items()} == {
        "w_fc": ((4, 3), 0.02),
        "b_fc": ((3,), 0.0),
        "w_out": ((3, 4), residual_std(2)),
        "b_out": ((4,), 0.0),
    }


def test_without_biases_and_with_a_projection_that_begins_at_zero():
    mlp = MLP(bh.ModelConfig(d_model=4, d_ff=3, mlp_bias=False, zero_init=True, activation="relu_squared"))
    assert {name: (p.shape, p.std) for name, p in mlp.parameters().items()} == {
        "w_fc": ((4, 3), 0.02),
        "w_out": ((3, 4), 0.0),
    }
    rng = np.random.default_rng(0)
    x, p = rng.standard_normal((2, 3, 4)), {"w_fc": rng.standard_normal((4, 3)), "w_out": rng.standard_normal((3, 4))}
    wide = x @ p["w_fc"]
    np.testing.assert_allclose(mlp.apply(p, x).data, np.where(wide > 0, wide * wide, 0.0) @ p["w_out"])


@pytest.mark.parametrize("activation", [gelu, relu], ids=lambda e: e.name)
def test_it_applies_the_activation_that_the_config_names(activation):
    mlp, p = made(activation.name)
    x = np.random.default_rng(1).standard_normal((2, 3, 4))
    expected = linear(activation(linear(x, p["w_fc"], p["b_fc"])), p["w_out"], p["b_out"])
    np.testing.assert_array_equal(mlp.apply(p, x).data, expected.data)


def test_an_activation_registered_elsewhere_is_a_choice_until_it_goes(toy):
    ours = with_role("activation", "gate")[:-1]
    assert with_role("activation", "gate") == (*ours, "squared_relu")
    assert bh.ModelConfig(activation="squared_relu").activation == "squared_relu"
    with pytest.raises(ConfigError, match=rf"activation is 'tanh'. Use one of {', '.join(ours)}, squared_relu\.$"):
        bh.ModelConfig(activation="tanh")
    del registry["squared_relu"]
    with pytest.raises(ConfigError, match=rf"Use one of {', '.join(ours)}\.$"):
        bh.ModelConfig(activation="squared_relu")
    registry["squared_relu"] = toy  # for the fixture


@pytest.mark.parametrize("name", ["linear", "adamw", "causal_self_attention", "", "no such"])
def test_other_equations_are_no_activations(name):
    with pytest.raises(ConfigError, match=f"Use one of {', '.join(with_role('activation', 'gate'))}"):
        bh.ModelConfig(activation=name)


def test_the_help_names_a_gate():
    said = getsource(bh.ModelConfig).split("activation: ")[1].split('"""')[1]
    assert any(name in said for name in with_role("gate"))


def test_a_model_with_it_trains_generates_and_is_stored(either, tmp_path):
    config = bh.TrainConfig(
        model=bh.ModelConfig(vocab_size=7, seq_len=5, d_model=4, n_layers=2, n_heads=2, activation=either.name)
    )
    model, optimizer, (tokens, targets) = bh.TinyGPT(config.model), bh.AdamW(lr=0.01), batch(config.model)
    losses = []
    for _ in range(40):
        model.zero_grad()
        loss = model.loss(tokens, targets)
        loss.backward()
        optimizer.step(model.parameters())
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.1
    arrays = {name: p.data for name, p in model.parameters().items()}
    state = {"step": 40, "text": {}}
    checkpoint.save(tmp_path / "run", checkpoint.Checkpoint(config, arrays, optimizer.moments, state))
    loaded = checkpoint.load_model(tmp_path / "run")
    assert loaded.config == config.model
    text, *others = (
        list(generate(m, [1, 2], 4, Sampling(temperature=0), runtime=each.name))
        for each in reversed(runtimes())
        for m in (model, loaded)
        if not each.obstacle(Request("generate", config.model))
    )
    assert all(other == text for other in others)
    assert loaded.loss(tokens, targets).item() == model.loss(tokens, targets).item()
