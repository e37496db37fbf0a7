"""The arithmetic of every gradient of a model: it adds up, and each number in it says where it was read.

The equations one by one, over random shapes, are in tests/equations (`check_gradient_terms`).
"""

import math

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Tensor
from byhand.equations import layer_norm, linear, swiglu
from byhand.tracing.trace import Trace
from equations.checks import element_of, leaves, size
from model_cases import batch, drawn_config, parameters

SLOPES_OF_ONE = {
    "add_positional", "embedding", "residual", "split_qkv", "merge_heads", "repeat_heads", "reshape", "transpose"
}  # fmt: skip


def walked_back(config, dtype=np.float64):
    model = bh.TinyGPT(config, arrays=parameters(config, dtype))
    return Trace.of(lambda: model.loss(*batch(config))).backward()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(8))
def test_terms_add_up_to_every_gradient_and_every_leaf_is_a_door(seed, dtype):
    config, rng = drawn_config(seed), np.random.default_rng(seed)
    gradients = walked_back(config, dtype)
    ones = {1.0, config.d_model**0.5 if config.scaled_embeddings else 1.0}
    precision = 64 * float(np.finfo(dtype).eps)
    for name, d in gradients.by_name.items():
        index = tuple(int(rng.integers(n)) for n in d.shape)
        uses = gradients.terms(name, index)
        if name == "loss":
            assert uses == []
            continue
        scale = max(1e-2, math.fsum(size(use.term) for use in uses))
        assert abs(math.fsum(use.term.value for use in uses) - float(d[index])) <= precision * scale, name
        for use in uses:
            numbers = [leaf for leaf in leaves(use.term) if not leaf.op]  # an empty sum is none
            assert any(leaf.source for leaf in numbers) or not numbers, (name, use.equation)
            for leaf in numbers:
                if leaf.source is not None:
                    assert leaf.value == element_of(gradients, use, leaf.source), (name, use.equation, leaf.label)
            if use.equation in SLOPES_OF_ONE:
                assert {leaf.value for leaf in numbers if leaf.source is None} <= ones


def test_each_use_of_a_tensor_is_apart():
    gradients = walked_back(bh.ModelConfig(vocab_size=7, seq_len=4, d_model=4, n_layers=1, n_heads=2))
    uses = gradients.terms("x", (0, 1, 2))
    assert [(use.results, use.equation, use.input) for use in uses] == [
        (("blocks.0.x_mid",), "residual", "x"), (("blocks.0.ln_1",), "layer_norm", "x")
    ]  # fmt: skip
    twice = Tensor(np.asarray([[1.0, 2.0]]), requires_grad=True, name="x")
    for trace in (Trace.of(lambda: twice @ twice.reshape(2, 1)), Trace.of(lambda: swiglu(twice, twice))):
        gradients = trace.backward()
        assert math.fsum(use.term.value for use in gradients.terms("x", (0, 1))) == pytest.approx(
            float(gradients.by_name["x"][0, 1]), rel=1e-14
        )
    assert [use.input for use in gradients.terms("x", (0, 1))] == ["gate", "up"]


def test_contributions_of_applications_add_up_to_the_gradient():
    gradients = walked_back(bh.ModelConfig(vocab_size=7, seq_len=4, d_model=4, n_layers=1, n_heads=2))
    twice = Tensor(np.asarray([[1.0, 2.0]]), requires_grad=True, name="x")
    both = Trace.of(lambda: swiglu(twice, twice) + twice @ twice.reshape(2, 1)).backward()
    for way, name, index in ((gradients, "x", (0, 1, 2)), (gradients, "wte", (3, 1)), (both, "x", (0, 1))):
        tensor = way.trace.tensor(name)
        parts = [way.contribution(step, tensor, index) for step in way.uses(tensor)]
        assert [part.term.value for part in parts] == pytest.approx([part.value for part in parts], rel=1e-6)
        assert math.fsum(part.value for part in parts) == pytest.approx(float(way.by_name[name][index]), rel=1e-6)
        assert {part.target for part in parts} == {way.answer(name, index).target}


def test_what_no_tensor_holds_is_named_by_who_saved_it():
    rng = np.random.default_rng(1)
    x, *affine = (
        Tensor(rng.standard_normal(shape), requires_grad=True, name=name)
        for name, shape in (("x", (2, 3)), ("g", 3), ("b", 3))
    )
    gradients = Trace.of(lambda: layer_norm(x, *affine, name="ln")).backward(rng.standard_normal((2, 3)))
    (use,) = gradients.terms("x", (1, 0))
    assert use.origins == (
        {"name": "ln", "gradient": True}, {"saved_by": "ln", "saved": 0}, {"saved_by": "ln", "saved": 1},
        {"name": "g", "gradient": False},
    )  # fmt: skip
    plain = Trace.of(lambda: layer_norm(x, name="ln")).backward(rng.standard_normal((2, 3)))
    (use,) = plain.terms("x", (1, 0))
    assert use.origins[1] == {"name": "ln", "gradient": False}, "without gain the result is what was saved"
    assert plain.trace.saved("x") == ()


def test_slopes_of_products_are_the_other_factor():
    rng = np.random.default_rng(2)
    x, w, b = (
        Tensor(rng.standard_normal(shape), requires_grad=True, name=name)
        for name, shape in (("x", (2, 3)), ("w", (3, 2)), ("b", 2))
    )
    gradients = Trace.of(lambda: linear(x, w, b, name="y")).backward(rng.standard_normal((2, 2)))
    said = {name: gradients.terms(name, index)[0] for name, index in (("x", (1, 2)), ("w", (2, 0)), ("b", (1,)))}
    labels = {name: [[p.label for p in part.parts] for part in use.term.parts] for name, use in said.items()}
    assert labels["x"] == [["∂y[1,0]", "W[2,0]"], ["∂y[1,1]", "W[2,1]"]]
    assert labels["w"] == [["∂y[0,0]", "x[0,2]"], ["∂y[1,0]", "x[1,2]"]]
    assert [part.label for part in said["b"].term.parts] == ["∂y[0,1]", "∂y[1,1]"]
