"""A pass as JSON: every number by name, and the arithmetic of any element, from which its value can be computed."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Tensor
from byhand.engine.operations import operate
from byhand.equations import causal_softmax, top_k
from byhand.errors import ExplainError
from byhand.tracing import Trace, gradient_as_json, pass_as_json, value_as_json
from model_cases import batch, drawn_config, parameters


def strict(plain):
    """Return plain values as a reader of JSON gets them, who knows no NaN."""
    return json.loads(json.dumps(plain, allow_nan=False))


def traced(seed, dtype=np.float64):
    config = drawn_config(seed)
    model = bh.TinyGPT(config, arrays=parameters(config, dtype))
    return Trace.of(lambda: model.loss(*batch(config)))


def worked(tree, read, defined):
    """Work a tree out from its leaves alone: sources are read, operations go by their names."""
    if "ref" in tree:
        return defined[tree["ref"]]
    if "op" not in tree:
        assert "source" not in tree or read(tree["source"]) == tree["value"], tree
        return tree["value"]
    value = operate(tree["op"], [worked(part, read, defined) for part in tree["parts"]])
    if "id" in tree:
        defined[tree["id"]] = value
    return value


def reader(trace, said):
    """Return a function that reads the number of a `source` in the pass's JSON."""

    def read(source):
        if "saved_by" in source:
            return float(trace.saved(source["saved_by"])[source["saved"]][tuple(source["index"])])
        array = said["gradients" if source["gradient"] else "values"][source["name"]]
        for i in source["index"]:
            array = array[i]
        return array

    return read


@pytest.mark.parametrize(("seed", "dtype"), [(0, np.float32), (1, np.float64), (4, np.float32), (5, np.float64)])
def test_every_number_and_its_arithmetic_can_be_read(seed, dtype):
    trace, rng = traced(seed, dtype), np.random.default_rng(seed)
    gradients = trace.backward()
    said = strict(pass_as_json(trace, gradients))
    read, precision = reader(trace, said), 64 * float(np.finfo(dtype).eps)
    assert list(said["values"]) == list(said["tensors"]) == list(trace.values)
    assert set(said["gradients"]) == set(gradients.by_name)
    for name, array in trace.values.items():
        assert np.array_equal(np.array(said["values"][name], array.dtype), array)
        index = tuple(int(rng.integers(-n, n)) for n in array.shape)
        value = strict(value_as_json(trace, name, index))
        assert value["value"] == float(array[index])
        assert np.array_equal(array[tuple(value["index"])], array[index])
        if name in trace.leaves:
            assert value["equation"] is value["terms"] is None
        else:
            assert value["equation"] == trace.made[name][0].equation.name
            assert worked(value["terms"], read, {}) == value["terms"]["value"]
            assert value["terms"]["value"] == pytest.approx(value["value"], rel=precision, abs=precision)
        if name in gradients.by_name:
            gradient = strict(gradient_as_json(gradients, name, index))
            assert gradient["value"] == float(gradients.by_name[name][index])
            for use, tree in zip(
                gradient["uses"], gradient["terms"]["parts"] if gradient["uses"] else (), strict=True
            ):
                assert tree["value"] == use["value"]
                assert all(result in said["tensors"] for result in use["results"])
            if gradient["uses"]:
                assert worked(gradient["terms"], read, {}) == gradient["terms"]["value"]
            if name != "loss":
                total = math.fsum(use["value"] for use in gradient["uses"])
                assert total == pytest.approx(gradient["value"], rel=precision, abs=100 * precision), name


def test_without_gradients_there_are_none():
    assert "gradients" not in pass_as_json(traced(0))


def test_what_is_not_finite_is_text():
    x = Tensor(np.array([[1.0, np.nan], [np.inf, -np.inf]]), requires_grad=True, name="x")
    with np.errstate(invalid="ignore"):
        trace = Trace.of(lambda: causal_softmax(x, name="p"))
        said = strict(pass_as_json(trace, trace.backward()))
    assert said["values"]["x"] == [[1.0, "NaN"], ["Infinity", "-Infinity"]]
    assert [float(text) for text in said["values"]["x"][1]] == [math.inf, -math.inf]
    dropped = Trace.of(lambda: top_k(Tensor(np.array([1.0, 2.0]), name="z"), k=1, name="kept"))
    assert strict(value_as_json(dropped, "kept", (0,)))["value"] == "-Infinity"


def test_what_is_not_there():
    trace = traced(0)
    with pytest.raises(ExplainError, match=r"logits\[0,0,999\] does not exist"):
        value_as_json(trace, "logits", (0, 0, 999))
    with pytest.raises(ExplainError, match="nothing is called 'nosuch' in this pass"):
        value_as_json(trace, "nosuch")
    with pytest.raises(ExplainError, match="tokens has no gradient"):
        gradient_as_json(trace.backward(), "tokens", (0, 0))


def test_a_number_without_axes_needs_no_index():
    trace = traced(0)
    assert value_as_json(trace, "loss")["value"] == trace.result.item()
    assert gradient_as_json(trace.backward(), "loss")["value"] == 1.0


def test_no_book_is_opened():
    code = "import sys, byhand.tracing as t; print([m for m in sys.modules if m.startswith('byhand.book')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"
