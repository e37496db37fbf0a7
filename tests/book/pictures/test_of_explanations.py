"""A number of a model as a picture: its place, its array, and bars that add up to it."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from book.pictures.drawn import assert_readable
from byhand import ModelConfig, TinyGPT
from byhand.book.explain.explainer import Explainer
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.of_explanations import fitted, svg
from byhand.optim import AdamW

TOKENS, TARGETS = [[3, 1, 4, 1, 5]], [[1, 4, 1, 5, 9]]
BAR = re.compile(r'<rect x="[\d.]+" y="[\d.]+" width="([\d.]+)" height="8"')


@pytest.fixture(scope="module")
def explainer():
    config = ModelConfig(vocab_size=40, seq_len=8, d_model=24, n_layers=2, n_heads=2)
    return Explainer(TinyGPT(config, seed=2), TOKENS, TARGETS, AdamW(), 1.0)


def drawn(explainer, name, index, grad=False, lang="en", **others):
    explanation = explainer.explain(name, index, grad)
    return explanation, svg(explanation, explainer.array(name, grad), lang, **others)


CASES = [
    ("blocks.1.attn.weights", (0, 0, 2, 1), False),
    ("blocks.1.attn.weights", (0, 0, 2, 1), True),
    ("logits", (0, 2, 39), False),
    ("blocks.0.mlp.act", (0, 1, 3), False),
    ("loss", (), False),
    ("loss", (), True),
    ("wte", (3, 0), False),
    ("wte", (39, 0), True),
    ("lm_head.b", (17,), True),
    ("blocks.0.attn.w_qkv.update", (23, 71), False),
    ("blocks.0.attn.w_qkv.m", (0, 0), False),
    ("blocks.0.attn.scores", (0, 1, 4, 0), True),
]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("name", "index", "grad"), CASES)
def test_its_words_can_be_read(explainer, name, index, grad, lang):
    _, picture = drawn(explainer, name, index, grad, lang)
    assert_readable(ElementTree.fromstring(picture))


@pytest.mark.parametrize(("name", "index", "grad"), CASES)
def test_the_array_holds_the_number(explainer, name, index, grad):
    explanation, picture = drawn(explainer, name, index, grad)
    assert explainer.array(name, grad)[index] == pytest.approx(explanation.value)
    assert f"= {decimal(explanation.value)}</text>" in picture


def test_bars_are_as_long_as_the_terms(explainer):
    explanation, picture = drawn(explainer, "logits", (0, 2, 39), shown=3)
    values = [t.value for t in explanation.terms]
    shown = [*values[:3], sum(values[3:])]
    lengths = [float(width) for width in BAR.findall(picture)]
    longest = max(map(abs, shown))
    np.testing.assert_allclose(
        [length / max(lengths) for length in lengths], [abs(v) / longest for v in shown], atol=2e-3
    )
    assert f"the rest, {len(values) - 3} terms" in picture
    assert decimal(sum(values)) in picture


def test_a_large_array_is_thinned_to_a_window(explainer):
    _, picture = drawn(explainer, "logits", (0, 2, 39))
    assert "columns 24 to 39 of 40" in picture
    assert "rows" not in picture
    _, picture = drawn(explainer, "blocks.0.attn.w_qkv.theta", (12, 30), lang="zh")
    assert "行 4 至 19，共 24" in picture
    assert "列 22 至 37，共 72" in picture


def test_what_the_mask_hides_is_crossed_out(explainer):
    name, index = "blocks.1.attn.weights", (0, 0, 2, 1)
    _, open_ = drawn(explainer, name, index)
    _, masked = drawn(explainer, name, index, hidden=lambda i, j: j > i)
    assert masked.count("<polyline") - open_.count("<polyline") == 10 * 5
    assert ">0</text>" in open_


def test_places_are_called_by_their_tokens(explainer):
    _, picture = drawn(
        explainer,
        "blocks.1.attn.weights",
        (0, 0, 2, 1),
        spell=lambda axis, place: "abcde"[place] if axis > 1 else "?",
    )
    assert picture.count(">2 c</text>") == 2


def test_long_words_lose_their_middle():
    assert fitted("short", 100, 12) == "short"
    cut = fitted("blocks.0.attn.weights[0,0,2,1]", 100, 12)
    assert cut.startswith("bloc")
    assert cut.endswith("1]")
    assert "…" in cut
