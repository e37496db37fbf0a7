"""What an answer costs in a wide model: few terms are made. JSON leaves no number out unsaid."""

import numpy as np
import pytest

import byhand as bh
from byhand.book.explain.explainer import Explainer
from byhand.book.explain.text import text
from byhand.engine import operations, rows, terms
from byhand.engine.terms import Term
from byhand.equations import softmax
from model_cases import batch, parameters, setting_name, stored_settings

MOST = 300  # terms made for an answer and its text
VOCAB = operations.EXACT + 7
WIDE = bh.ModelConfig(vocab_size=VOCAB, seq_len=4, d_model=384, n_layers=2, n_heads=12, tied_embeddings=True)
CELLS = (
    ("loss", ()), ("logits", (0, 3, 17)), ("d logits", (0, 3, 17)), ("d ln_f", (0, 3, 5)), ("d wte", (7, 3)),
    ("blocks.1.attn.weights", (0, 3, 3, 1)), ("blocks.1.ln_2", (0, 3, 7)), ("d blocks.1.x_mid", (0, 3, 7)),
    ("blocks.0.mlp.out", (0, 3, 4)), ("d blocks.0.mlp.w_fc", (3, 4)), ("blocks.0.mlp.w_fc.theta", (3, 4)),
    ("blocks.0.mlp.w_fc.update", (3, 4)), ("next.p", (17,)), ("next.token", ()),
)  # fmt: skip


@pytest.fixture
def made(monkeypatch):
    """Count the terms that are made."""
    counted, init = [0], Term.__init__

    def counting(self, *args, **facts):
        counted[0] += 1
        init(self, *args, **facts)

    monkeypatch.setattr(Term, "__init__", counting)
    return counted


@pytest.fixture(scope="module")
def wide():
    model = bh.TinyGPT(WIDE, seed=1)
    explainer = Explainer(model, [[7, VOCAB - 1, 7, 11]], [[VOCAB - 1, 7, 11, 3]], None, 1.0)
    explainer.gradients  # noqa: B018 - the pass itself is not part of an answer
    return explainer


@pytest.mark.parametrize(("target", "index"), CELLS, ids=[target for target, _ in CELLS])
def test_an_answer_of_a_wide_model_makes_few_terms(wide, made, target, index):
    name, gradient = target.removeprefix("d "), target.startswith("d ")
    answer = wide.answer(name, index, gradient)
    assert answer.term is not None
    assert answer.term.value == pytest.approx(answer.value, rel=1e-3, abs=1e-9)
    assert text(wide._explained(answer))
    assert 0 < made[0] <= MOST, made[0]


@pytest.mark.parametrize("config", stored_settings()[::3], ids=setting_name)
def test_lazy_parts_are_the_parts_that_are_made_at_once(config, monkeypatch):
    def answers():
        explainer = Explainer(bh.TinyGPT(config, arrays=parameters(config)), *batch(config), None, 0.05)
        rng = np.random.default_rng(3)
        for name in (*explainer.model.parameters(), *explainer.trace.made, "next.p", "next.token"):
            shape = explainer.array(name).shape
            index = tuple(int(rng.integers(n)) for n in shape)
            for grad in (False, True) if not name.startswith("next.") else (False,):
                explanation = explainer.explain(name, index, grad)
                yield explanation.as_json(), text(explanation)

    at_once = list(answers())
    monkeypatch.setattr(rows, "FEW", 1)
    assert list(answers()) == at_once


def test_json_that_is_too_long_counts_and_sums_the_rest(monkeypatch):
    config = bh.ModelConfig(vocab_size=300, seq_len=4, d_model=8, n_layers=1, n_heads=2)
    explainer = Explainer(bh.TinyGPT(config, seed=1), [[1, 2, 3]], [[2, 3, 299]])
    targets = (("loss", ()), ("ln_f", (0, 1, 2), True), ("next.p", (5,)))
    whole = {target: explainer.explain(*target).as_json() for target in targets}
    monkeypatch.setattr(terms, "WHOLE", 100)
    for target, plain in whole.items():
        short = explainer.explain(*target).as_json()
        assert short["value"] == plain["value"]
        assert len(short["inputs"]) + short["rest_of_inputs"] == len(plain["inputs"])
        assert short["inputs"] == plain["inputs"][: len(short["inputs"])]
        long = [tree for tree in parts(short["terms"]) if "rest" in tree]
        assert long
        for tree in long:
            values, rest = [part["value"] for part in tree["parts"]], tree["rest"]
            assert len(values) + rest["count"] == 300
            together = max(*values, rest["value"]) if tree["op"] == "max" else sum(values) + rest["value"]
            assert together == pytest.approx(tree["value"], rel=1e-12)
            assert values == sorted(values, key=abs, reverse=True)


def parts(tree):
    """Yield a tree of JSON and all its parts."""
    yield tree
    for part in tree.get("parts", ()):
        yield from parts(part)


def test_numpy_works_rows_that_are_too_long_for_python(monkeypatch):
    x = np.random.default_rng(1).standard_normal(5000)
    few = softmax.terms((17,), (x,), None)
    monkeypatch.setattr(operations, "EXACT", 1000)
    many = softmax.terms((17,), (x,), None)
    assert many.value == pytest.approx(few.value, rel=1e-15)
    assert many.parts[1].value == pytest.approx(few.parts[1].value, rel=1e-15)
