"""A trace of every model: what it says without numbers is enough to compute the pass again, bit for bit."""

import json

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Tensor, registry
from byhand.equations import linear, split_qkv
from byhand.tracing.trace import Trace
from model_cases import batch, parameters, setting_name, stored_settings, swept


def traced(config):
    model = bh.TinyGPT(config, arrays=parameters(config))
    return model, Trace.of(lambda: model.loss(*batch(config)))


@pytest.mark.parametrize("config", swept())
def test_the_pass_can_be_computed_again_from_json_and_leaves(config):
    _, trace = traced(config)
    said = json.loads(json.dumps(trace.as_json()))
    values = {name: tensor.data for name, tensor in trace.leaves.items()}
    for application in said["applications"]:
        inputs = [values[name] for name in application["inputs"].values()]
        result, _ = registry[application["equation"]].forward(*inputs, **application["static"])
        results = result if isinstance(result, tuple) else (result,)
        values |= dict(zip(application["results"].values(), results, strict=True))
    assert list(values) == list(trace.values) == list(said["tensors"])
    for name, array in trace.values.items():
        assert np.array_equal(values[name], array), name
        described = said["tensors"][name]
        assert (described["shape"], described["dtype"]) == (list(array.shape), str(array.dtype))
    assert said["result"] == "loss"
    assert len(json.dumps(said)) < 400 * len(said["applications"]), "a pass without its numbers is small"


@pytest.mark.parametrize("config", swept())
def test_gradients_by_name_are_those_of_backward(config):
    model, trace = traced(config)
    gradients = trace.backward()
    trace.result.backward()
    for name, parameter in model.parameters().items():
        assert np.array_equal(gradients.by_name[name], parameter.grad), name
    made = {name for name in trace.made if trace.tensor(name).requires_grad}
    assert set(gradients.by_name) == made | set(model.parameters())
    assert [gradients.by_name[name].shape for name in made] == [trace.tensor(name).shape for name in made]
    names = [trace.result_names(step.node)[0] for step in gradients.steps]
    assert sorted(names, key=list(trace.made).index, reverse=True) == names, "the last application comes first"


@pytest.mark.parametrize("config", stored_settings(), ids=setting_name)
def test_terms_of_any_element_that_was_made(config):
    _, trace = traced(config)
    rng = np.random.default_rng(3)
    for name in trace.made:
        array = trace.tensor(name).data
        index = tuple(int(rng.integers(n)) for n in array.shape)
        assert trace.terms(name, index).value == pytest.approx(float(array[index]), rel=1e-12, abs=1e-14), name


def test_letters_of_an_equation_name_its_inputs_and_results():
    x = Tensor(np.ones((1, 2, 6)), requires_grad=True, name="packed")
    trace = Trace.of(lambda: split_qkv(x, n_heads=1, name="attn.qkv")[0])
    (application,) = trace.as_json()["applications"]
    assert application == {
        "name": "attn.qkv",
        "equation": "split_qkv",
        "static": {"n_heads": 1},
        "inputs": {"x": "packed"},
        "results": {"q": "attn.q", "k": "attn.k", "v": "attn.v"},
    }
    assert trace.as_json()["tensors"]["packed"] == {"shape": [1, 2, 6], "dtype": "float64", "requires_grad": True}


def test_tensors_of_one_name_and_of_none_stay_apart():
    x, w = Tensor(np.ones((1, 2))), Tensor(np.ones((2, 2)))
    trace = Trace.of(lambda: linear(linear(linear(x, w, name="y"), w), w, name="y"))
    assert list(trace.made) == ["y", "linear.1", "y.2"]
    assert list(trace.leaves) == ["x", "weight"]
    assert trace.name(trace.result) == "y.2"


def test_a_cotangent_of_ones_unless_one_is_given():
    x = Tensor(np.ones((1, 2)), requires_grad=True, name="x")
    trace = Trace.of(lambda: linear(x, Tensor(np.eye(2)), name="y"))
    assert trace.backward().by_name["x"].tolist() == [[1.0, 1.0]]
    assert trace.backward(np.asarray([[2.0, -1.0]])).by_name["x"].tolist() == [[2.0, -1.0]]
