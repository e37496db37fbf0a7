"""Names and places that a trace is asked for: those from the end are resolved, all others are refused in one line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import byhand as bh
from byhand.engine import Tensor
from byhand.equations import linear
from byhand.errors import ExplainError
from byhand.tracing.passes import resolved
from byhand.tracing.trace import Trace
from model_cases import batch, drawn_config, parameters

CONFIG = bh.ModelConfig(vocab_size=7, seq_len=4, d_model=4, n_layers=1, n_heads=2)


@pytest.fixture(scope="module")
def trace():
    model = bh.TinyGPT(CONFIG, arrays=parameters(CONFIG))
    return Trace.of(lambda: model.loss([[2, 1, 3, 3]], [[1, 3, 3, 0]]))


@pytest.mark.parametrize("seed", range(6))
def test_places_from_the_end_are_the_same_elements(seed):
    config = drawn_config(seed)
    model = bh.TinyGPT(config, arrays=parameters(config))
    trace = Trace.of(lambda: model.loss(*batch(config)))
    gradients, rng = trace.backward(), np.random.default_rng(seed)
    for name in trace.made:
        shape = trace.tensor(name).shape
        index = tuple(int(rng.integers(n)) for n in shape)
        from_the_end = tuple(i - n if rng.random() < 0.5 else i for i, n in zip(index, shape, strict=True))
        term = trace.terms(name, from_the_end)
        assert term == trace.terms(name, index)
        assert term.value == pytest.approx(float(trace.values[name][index]), rel=1e-12, abs=1e-14), name
        assert gradients.answer(name, from_the_end).as_json() == gradients.answer(name, index).as_json()
        assert gradients.terms(name, from_the_end) == gradients.terms(name, index)


@given(st.lists(st.integers(1, 4), max_size=4), st.data())
def test_every_place_is_that_of_the_array_or_refused(shape, data):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    index = tuple(data.draw(st.lists(st.integers(-6, 6), max_size=5)))
    try:
        expected = array[index] if len(index) == array.ndim else None
    except IndexError:
        expected = None
    if expected is None:
        with pytest.raises(ExplainError, match="has shape") as error:
            resolved("x", index, array.shape)
        assert "\n" not in str(error.value)
    else:
        place = resolved("x", index, array.shape)
        assert min(place, default=0) >= 0
        assert array[place] == expected


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda t, g: t.terms("yyy", ()), "nothing is called 'yyy' in this pass. `Trace.values` lists the names."),
        (lambda t, g: t.terms("blocks.0.attn.wieghts", (0,)), "Nearest: blocks.0.attn.weights"),
        (lambda t, g: t.tensor("logit"), "Nearest: logits"),
        (lambda t, g: t.terms("wte", (0, 0)), "no equation of this pass made wte. Read `Trace.values['wte']`."),
        (lambda t, g: t.terms("logits", (0, 4, 0)), "logits[0,4,0] does not exist: logits has shape (1, 4, 7). The "
         "last one is logits[0,3,6]."),
        (lambda t, g: t.terms("logits", (0, 0)), "logits[0,0] does not exist: logits has shape (1, 4, 7)."),
        (lambda t, g: t.terms("logits", ()), "give an index: logits has shape (1, 4, 7)."),
        (lambda t, g: t.terms("loss", (0,)), "loss[0] does not exist: loss has shape (). The last one is loss."),
        (lambda t, g: t.terms("logits", (0, 0.0, 1)), "the index of logits is (0, 0.0, 1). Use integers"),
        (lambda t, g: t.terms("logits", 5), "the index of logits is 5. Use integers"),
        (lambda t, g: g.answer("tokens", (0, 0)), "tokens has no gradient: it is given, not learned."),
        (lambda t, g: g.answer("nosuch", ()), "nothing is called 'nosuch'"),
        (lambda t, g: g.answer("wte", (7, 0)), "wte[7,0] does not exist: wte has shape (7, 4)."),
        (lambda t, g: g.answer("wte", (0, -5)), "wte[0,-5] does not exist"),
        (lambda t, g: g.terms("targets", (0, 0)), "targets has no gradient"),
        (lambda t, g: g.terms("wte", (1,)), "wte[1] does not exist"),
        (lambda t, g: g.central_difference("tokens", (0, 0)), "tokens has no gradient"),
        (lambda t, g: g.array("tokens"), "tokens has no gradient"),
    ],
)  # fmt: skip
def test_what_is_not_there(trace, ask, said):
    with pytest.raises(ExplainError) as error:
        ask(trace, trace.backward())
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_tensor_that_the_result_does_not_use_has_no_gradient():
    x, w = (Tensor(np.ones((2, 2)), requires_grad=True, name=name) for name in "xw")

    def compute():
        linear(x, w, name="unused")
        return linear(x, x, name="y")

    gradients = Trace.of(compute).backward()
    with pytest.raises(ExplainError, match=r"w has no gradient: it is not used by the loss\."):
        gradients.terms("w", (0, 0))


def test_numpy_integers_are_places(trace):
    assert trace.terms("logits", tuple(np.array([0, -1, 2]))) == trace.terms("logits", (0, 3, 2))
