"""How the next token is drawn, as arithmetic: the same probabilities and the same token as when a text is written."""

import json

import numpy as np
import pytest

import byhand as bh
from byhand.engine.operations import operate
from byhand.errors import ExplainError, NonFiniteError
from byhand.runtimes.sampling import Sampling, draw, penalised, probabilities
from byhand.tracing import Questions
from byhand.tracing.sampling import draw_answer, sampling_trace
from model_cases import parameters

CONFIG = bh.ModelConfig(vocab_size=9, seq_len=4, d_model=4, n_layers=1, n_heads=2)
SETTINGS = [
    Sampling(),
    Sampling(0.7, seed=3),
    Sampling(2.0, top_k=3, seed=4),
    Sampling(1.0, top_p=0.6, seed=5),
    Sampling(0.9, 5, 0.8, 6),
    Sampling(0),
    Sampling(0.8, min_p=0.2, repetition_penalty=1.3, seed=7),
    Sampling(0, repetition_penalty=3.0),
    Sampling(0.8, repetition_penalty=1.3, frequency_penalty=0.7, presence_penalty=-0.4, logit_bias=((3, 2.0),)),
    Sampling(0, frequency_penalty=2.0),
    Sampling(0, logit_bias=((3, 9.0), (3, 1.0), (4, -100.0))),
]
TOKENS = [*range(40), 7, 7]  # fmt: skip
DRAWN = TOKENS[5:]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_the_token_is_the_one_that_is_drawn(sampling, dtype):
    for seed in range(20):
        logits = np.random.default_rng(seed).normal(0, 2, 50).astype(dtype)
        trace = sampling_trace(logits, sampling, TOKENS, DRAWN)
        answer = draw_answer(trace, sampling)
        rng = np.random.default_rng(sampling.seed)
        assert answer.value == draw(logits, sampling, rng, tokens=TOKENS, drawn=DRAWN)
        tree = answer.as_json()["terms"]
        assert operate(tree["op"], [part["value"] for part in tree["parts"]]) == answer.value
        if not sampling.greedy:
            facts = answer.facts
            assert facts["sum_before"] <= facts["u"] * (1 + 1e-6)
            assert facts["sum"] - facts["sum_before"] == pytest.approx(trace.result.data[int(answer.value)])
            assert facts["sum"] > facts["u"] * (1 - 1e-6)
            kept = penalised(bh.Tensor(logits), sampling, TOKENS, DRAWN).data
            assert trace.result.data.tobytes() == probabilities(kept, sampling).tobytes()
            assert [part["source"]["index"] for part in tree["parts"][1:]] == [[v] for v in range(50)]


def test_every_step_before_the_draw_is_answered():
    model, sampling = bh.TinyGPT(CONFIG, arrays=parameters(CONFIG)), Sampling(0.5, 4, 0.9)
    questions = Questions(model, [[1, 2, 3]], None, sampling=sampling)
    logits = questions.trace.tensor("logits").data[0, -1]
    kept = [v for v in range(9) if np.isfinite(questions.array("next.top_p")[v])]
    assert 1 <= len(kept) <= 4
    assert {name for name in questions.names() if name.startswith("next.")} == {
        "next.logits", "next.scaled", "next.top_k", "next.top_p", "next.p", "next.token"
    }  # fmt: skip
    for v in range(9):
        assert questions.answer("next.scaled", (v,)).term.value == pytest.approx(float(logits[v]) / 0.5)
        p = questions.answer("next.p", (v,))
        assert p.value == pytest.approx(p.term.value)
        assert (p.value > 0) == (v in kept)
        assert json.loads(json.dumps(p.as_json(), allow_nan=False))["equation"] == "softmax"
    token = questions.answer("next.token", ())
    assert int(token.value) in kept
    with pytest.raises(ExplainError, match=r"next\.token has shape"):
        questions.answer("next.token", (0,))


def test_the_penalty_is_answered_with_what_the_prompt_has():
    model = bh.TinyGPT(CONFIG, arrays=parameters(CONFIG))
    questions = Questions(model, [[1, 2, 2]], None, sampling=Sampling(0, repetition_penalty=4.0))
    logits = questions.trace.tensor("logits").data[0, -1]
    assert questions.array("next.counts").tolist() == [0, 1, 2, 0, 0, 0, 0, 0, 0]
    for v in range(9):
        answer = questions.answer("next.penalised", (v,))
        factor = 1 if v not in (1, 2) else 0.25 if logits[v] > 0 else 4
        assert answer.value == pytest.approx(float(logits[v]) * factor)
        assert answer.equations == ("repetition_penalty",)
    assert questions.answer("next.token", ()).value == int(np.argmax(questions.array("next.penalised")))


def test_a_bias_is_answered_with_the_number_that_was_given():
    model = bh.TinyGPT(CONFIG, arrays=parameters(CONFIG))
    questions = Questions(model, [[1, 2]], None, sampling=Sampling(logit_bias=((3, 1.5),)))
    logits = questions.trace.tensor("logits").data[0, -1]
    answer = questions.answer("next.biased", (3,))
    assert answer.value == pytest.approx(float(logits[3]) + 1.5)
    assert (answer.equations, questions.array("next.bias").tolist()) == (("add",), [0, 0, 0, 1.5, 0, 0, 0, 0, 0])


def test_logits_that_are_not_finite_draw_nothing():
    for sampling in (Sampling(), Sampling(0)):
        with np.errstate(invalid="ignore"):
            trace = sampling_trace(np.array([0.0, np.nan]), sampling)
        with pytest.raises(NonFiniteError):
            draw_answer(trace, sampling)
