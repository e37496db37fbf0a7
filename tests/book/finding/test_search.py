"""The first answer to what learners type is right, in both languages; searching is forgiving and bounded."""

import json
from pathlib import Path

import pytest

from book.finding.judging import is_right, names
from byhand.book.finding.search import LONGEST, nearest, search, stored
from byhand.book.finding.words import Language, stem
from byhand.book.words.plain_math import plain
from byhand.cli.arguments.parsing import ALIASES
from byhand.errors import ByhandError
from hostile.outcome import soon

QUESTIONS = json.loads((Path(__file__).parents[1] / "questions_tuned.json").read_text(encoding="utf-8"))
ANSWERS = stored().findings()


def first(query):
    found = search(query)
    return found[0].finding if found else None


SHARES = [8, pytest.param(1, marks=pytest.mark.slow)]
"""One of so many is searched for; all of them in the sweep."""


@pytest.mark.parametrize("every", SHARES)
def test_what_learners_type_is_answered_right_the_first_time(every):
    """Names, words, formulas, whole questions, typing errors, traditional characters: 94 of a hundred of all."""
    asked = QUESTIONS[::every]
    wrong = [question["ask"] for question in asked if not is_right(question, first(question["ask"]))]
    assert len(wrong) <= (0.06 if every == 1 else 0.12) * len(asked), wrong


def test_the_questions_name_answers_that_exist():
    known = {name for answer in ANSWERS for name in names(answer)}
    assert not [name for question in QUESTIONS for name in question["answers"] if name.lower() not in known]


@pytest.mark.parametrize("every", SHARES)
@pytest.mark.parametrize("kind", sorted({answer.kind for answer in ANSWERS}))
def test_every_answer_is_found_by_its_name_and_its_titles(kind, every):
    for answer in [answer for answer in ANSWERS if answer.kind == kind][::every]:
        assert first(answer.name) is answer
        for title in {answer.title.en, answer.title.zh, *filter(None, (answer.term.en, answer.term.zh))}:
            assert answer in [match.finding for match in search(title)[:4]], title


@pytest.mark.parametrize("name", sorted(answer.name for answer in ANSWERS if answer.kind == "equation"))
def test_every_equation_is_found_by_its_formulas(name):
    answer = first(name)
    assert first(answer.latex).name == name
    assert name in [match.finding.name for match in search(answer.latex_derivative)[:3]]


def test_names_that_train_accepts_lead_to_the_same_setting():
    for other, own in ALIASES.items():
        assert own in [match.finding.name for match in search(other)[:2]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sofmax", "softmax"), ("layernrom", "layer_norm"), ("cross entorpy", "cross_entropy"),
        ("droput", "dropout"),
        ("soft max", "softmax"), ("learningrate", "--lr"),
        ("Ｄｒｏｐｏｕｔ", "dropout"), ("ＬＮ（ｘ）", "layer_norm"),
        ("交叉墒", "cross_entropy"), ("殘差連接", "residual"), ("∂𝐿/∂𝑧", "cross_entropy"),
        ("blocks.3.attn.scores", "attention_scores"), ("h.0.attn.weights", "causal_softmax"), ("P V", "mix"),
        ("nn::layernorm_lastdm", "layer_norm"), ("∂L/∂z", "cross_entropy"), ("τ", "temperature"), ("λ", "adamw"),
        (r"\beta_2", "--beta2"),
    ],
)  # fmt: skip
def test_near_misses_symbols_and_derivatives(query, expected):
    assert first(query).name == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("torch.nn.functional.silu(x)", "silu"), ("tf.keras.layers.LayerNormalization(axis=-1)", "layer_norm"),
        ("jax.grad(loss_fn)(params)", "backward"), ("SomeConfig(hidden_size=64)", "--d-model"),
        ("config.json里的hidden_size", "--d-model"), ("nn.Conv3d", "rnn"), ("h.3.ln_1.weight", "layer_norm"),
        ("what does x.masked_fill do", "causal_softmax"), ("SwitchTransformersConfig()", "moe"),
        ("ggml_rope_ext", "rotary"), ("mlp.c_fc.weight", "mlp"), ("deepspeed.initialize(model)", "pipeline_parallel"),
        ("x.T", "transpose"), ("lr = 1e-3", "--lr"),
    ],
)  # fmt: skip
def test_names_of_libraries_are_found_by_their_parts(query, expected):
    assert first(query).name == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("exp(u/k)/sum(exp(u/k))", "temperature"), ("u/√(均方+ε)×增益", "rms_norm"),
        (r"\dfrac{u - \mathbb{E}[u]}{\sqrt{\operatorname{Var}[u] + \varepsilon}}", "layer_norm"),
    ],
)  # fmt: skip
def test_formulas_are_found_whatever_their_letters(query, expected):
    assert first(query).name == expected


def test_a_setting_finds_every_equation_that_has_it():
    having = {answer.name for answer in ANSWERS if "ε" in map(plain, answer.settings.values())}
    assert having >= {"layer_norm", "adamw"}
    assert having <= {match.finding.name for match in search("ε")}


@pytest.mark.parametrize(
    "query", ["the", "a", "where is the", "", "   ", "xyzzy plugh", "?!", "\\", "((((", "😀", "_" * 500, "$$"]
)
def test_nonsense_finds_nothing(query):
    assert search(query) == []


@pytest.mark.parametrize(
    "piece",
    ["x", "x ", "Q K^T ", "_{", "[a,", "sum_a^b ", r"\frac", "注意力", "墒交", "-log p_y + ", "softmx of ", "α"],
)
def test_the_longest_query_is_answered_and_a_longer_one_refused(piece):
    with soon(piece):
        search((piece * LONGEST)[:LONGEST])
    with pytest.raises(ByhandError, match="120,000 characters"):
        search((piece * 120_000)[:120_000])


def test_nothing_near_still_names_something():
    assert "softmax" in nearest("sftmxx")
    assert nearest("ｓｆｔｍｘｘ") == nearest("sftmxx")


def test_words_that_are_written_otherwise_are_one():
    assert len({stem(word) for word in ("train", "training", "trained", "trainer", "trains")}) == 1
    assert stem("normalise") == stem("normalize") == stem("normalization")
    language = Language("體体", {"资料": "数据"}, {"数据": "=data"})
    assert language.plain("ＡＢ體资料") == "AB体数据"
    assert "=data" in language.tokens("资料")
