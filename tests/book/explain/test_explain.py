"""explain: the terms add up to the value, gradients to what the graph and central differences say."""

import math
from dataclasses import replace

import numpy as np
import pytest

import byhand as bh
from byhand.book.entries.contract import ENTRIES
from byhand.book.explain.explainer import Explainer, explain
from byhand.book.explain.text import text
from byhand.book.numbers import arithmetic
from byhand.book.numbers.closed_form import array, several
from byhand.engine import Composite, Tensor, registry
from byhand.engine.terms import labelled
from byhand.errors import ExplainError
from byhand.tracing.gradients import gradient_term
from byhand.tracing.trace import Trace

SHAPE = {"vocab_size": 7, "seq_len": 4, "d_model": 4, "n_layers": 2, "n_heads": 2}
CONFIGS = {
    "seed": bh.ModelConfig(**SHAPE),
    "post-norm": bh.ModelConfig(**SHAPE, norm_position="post", activation="relu"),
    "gpt2": bh.ModelConfig(**SHAPE, norm_affine=True, tied_embeddings=True, lm_head_bias=False),
    "bidirectional": bh.ModelConfig(**SHAPE, causal=False),
    "llama": bh.ModelConfig(
        **SHAPE, positions="rotary", n_kv_heads=1, norm="rms", norm_affine=True, activation="swiglu",
        attention_bias="none", mlp_bias=False, lm_head_bias=False, tied_embeddings=True,
    ),
    "others": bh.ModelConfig(
        **SHAPE, positions="rotary", rope_pairing="neighbours", rope_fraction=0.5, d_head=4, qk_norm=True,
        norm="rms", norm_affine=True, activation="relu_squared", attention_bias="qkv", attention_window=2,
        logit_softcap=3.0,
    ),
}  # fmt: skip
VARIANTS = bh.ModelConfig(
    **SHAPE, positions="rotary", rope_base=9.0, n_kv_heads=1, d_head=5, attention_window=2, qk_norm=True
)
PRECISION = {"float32": 1e-6, "float64": 1e-12}
TOKENS, TARGETS = [[2, 1, 3], [3, 3, 0]], [[1, 3, 0], [3, 0, 6]]


def model_of(config, dtype="float64"):
    """A model whose weights are large enough for every part to matter."""
    drawn = bh.TinyGPT(config, seed=5, dtype="float64")
    rng = np.random.default_rng(1)
    arrays = {n: (rng.standard_normal(p.shape) * 0.7).astype(dtype) for n, p in drawn.parameters().items()}
    return bh.TinyGPT(config, arrays=arrays)


@pytest.fixture(scope="module", params=CONFIGS)
def config(request):
    return CONFIGS[request.param]


def scale(explanation):
    """Return the scale of rounding: the sizes of the terms before they cancel."""
    return math.fsum(abs(term.value) for term in explanation.terms)


@pytest.mark.parametrize("dtype", PRECISION)
def test_terms_add_up_to_the_value(config, dtype):
    explainer = Explainer(model_of(config, dtype), TOKENS, TARGETS)
    rng = np.random.default_rng(2)
    for name in explainer.trace.made:
        shape = explainer.trace.tensor(name).shape
        for _ in range(3):
            index = tuple(int(rng.integers(n)) for n in shape)
            e = explainer.explain(name, index)
            assert e.value == float(explainer.trace.tensor(name).data[index])
            assert abs(e.term.value - e.value) <= PRECISION[dtype] * max(scale(e), abs(e.value)), e.target
            assert math.fsum(t.value for t in e.terms) == pytest.approx(e.term.value, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("dtype", PRECISION)
def test_contributions_add_up_to_the_gradient(config, dtype):
    model = model_of(config, dtype)
    explainer = Explainer(model, TOKENS, TARGETS)
    rng = np.random.default_rng(3)
    model.loss(TOKENS, TARGETS).backward()
    for name, gradient in explainer.gradients.by_name.items():
        index = tuple(int(rng.integers(n)) for n in gradient.shape)
        e = explainer.explain(name, index, grad=True)
        if name in model.parameters():
            assert e.value == float(model.parameters()[name].grad[index])
        if e.equations:
            assert abs(e.term.value - e.value) <= PRECISION[dtype] * max(scale(e), 1e-3), e.target
        assert e.difference == pytest.approx(e.value, rel=1e-5, abs=1e-6 if dtype == "float32" else 1e-8), e.target


@pytest.mark.parametrize("stem", [s for s, e in registry.items() if not isinstance(e, Composite)])
def test_contributions_of_every_equation(stem):
    """Element by element, the uses in the example add up to its gradients."""
    worked = ENTRIES[stem]
    inputs = {
        n: Tensor(array(x, n not in worked.gradients), requires_grad=n in worked.gradients, name=n)
        for n, x in worked.inputs.items()
    }
    cotangents = [array(d) for d in several(worked.d_result)]

    def loss():
        results = several(registry[stem](*inputs.values(), **worked.static))
        finite = [np.where(np.isfinite(r.data), d, 0) for r, d in zip(results, cotangents, strict=True)]
        return sum(
            (r * Tensor(d)).reshape(1, -1) @ Tensor(np.ones((r.data.size, 1)))
            for r, d in zip(results, finite, strict=True)
            if r.data.size
        )

    with np.errstate(invalid="ignore"):
        trace = Trace.of(loss)
    steps = trace.backward(np.ones((1, 1))).steps
    assert set(worked.gradients) <= set(trace.leaves)
    for name, gradient in worked.gradients.items():
        if stem in ("top_k", "top_p"):
            continue  # dropped logits are -inf, which no product propagates: their derivative has tests of its own
        for index, expected in np.ndenumerate(array(gradient)):
            found = [
                gradient_term(trace, s, slot, index).value
                for s in steps
                for slot, tensor in enumerate(s.node.inputs)
                if tensor is inputs[name]
            ]
            assert math.fsum(found) == pytest.approx(expected, rel=1e-12, abs=1e-12), (name, index)


def test_an_update_is_what_the_optimizer_does():
    model = model_of(CONFIGS["seed"], "float32")
    optimizer = bh.AdamW(lr=0.01, weight_decay=0.1)
    for _ in range(2):
        model.zero_grad()
        model.loss(TOKENS, TARGETS).backward()
        optimizer.step(model.parameters())
    before = {n: p.data.copy() for n, p in model.parameters().items()}
    name, index = "blocks.0.attn.w_qkv", (1, 3)
    explained = {
        part: explain(model, TOKENS, TARGETS, f"{name}.{part}", index, optimizer=optimizer)
        for part in ("theta", "m", "v", "update")
    }
    model.zero_grad()
    model.loss(TOKENS, TARGETS).backward()
    optimizer.step(model.parameters())
    assert explained["theta"].value == float(model.parameters()[name].data[index])
    assert explained["m"].value == float(optimizer.moments["m"][name][index])
    assert explained["v"].value == float(optimizer.moments["v"][name][index])
    moved = float(model.parameters()[name].data[index]) - float(before[name][index])
    assert explained["update"].value == pytest.approx(moved, rel=1e-3)
    for e in explained.values():
        assert e.term.value == pytest.approx(e.value, rel=1e-6)
    assert "step 3" in explained["m"].note.en


def test_an_update_by_muon_is_what_the_optimizer_does():
    model, name, index = model_of(CONFIGS["seed"], "float32"), "blocks.0.attn.w_qkv", (1, 3)
    optimizer = bh.Muon({name: 3}, lr=0.01, weight_decay=0.1, scales={name: 4.0})
    for _ in range(2):
        model.zero_grad()
        model.loss(TOKENS, TARGETS).backward()
        optimizer.step(model.parameters())
    before = float(model.parameters()[name].data[index])
    explained = {
        part: explain(model, TOKENS, TARGETS, f"{name}.{part}", index, optimizer=optimizer, max_grad_norm=0.01)
        for part in ("theta", "m", "update")
    }
    with pytest.raises(ExplainError, match="muon keeps no v"):
        explain(model, TOKENS, TARGETS, f"{name}.v", index, optimizer=optimizer)
    model.zero_grad()
    model.loss(TOKENS, TARGETS).backward()
    optimizer.clipped_step(model.parameters(), 0.01)
    assert explained["theta"].value == float(model.parameters()[name].data[index])
    assert explained["m"].value == float(optimizer.moments["m"][name][index])
    assert explained["update"].value == pytest.approx(float(model.parameters()[name].data[index]) - before, rel=1e-3)
    for part, e in explained.items():  # five steps in float32 amplify rounding; the update is in float64
        assert e.term.value == pytest.approx(e.value, rel=1e-3 if part == "update" else 1e-6)
        assert "lr 0.04" in e.note.en
    lines = {d.label: d for d in explained["theta"].definitions}
    assert abs(lines["n"].term.value) <= lines["|n|"].term.value
    assert text(explained["theta"], "en").count(arithmetic.decimal(lines["O[1,3]"].term.value)) > 1
    assert {(s.name, s.index, s.gradient) for s in explained["theta"].sources} == {
        (name, index, False), (name, index, True), (f"{name}.m before", index, False)
    }  # fmt: skip


def test_clipping_is_said_and_done():
    model = model_of(CONFIGS["seed"])
    e = explain(model, TOKENS, TARGETS, "wte.m", (2, 0), max_grad_norm=0.01)
    free = explain(model, TOKENS, TARGETS, "wte.m", (2, 0))
    assert "clipped from" in e.note.en
    assert "裁剪到 0.01" in e.note.zh
    assert abs(e.value) < abs(free.value)
    gradient = explain(model, TOKENS, TARGETS, "wte", (2, 0), grad=True)
    assert e.definitions[0].label == free.sources[0].letter == "g"
    assert [s.value for s in e.sources if s.gradient] == [gradient.value], "one name, one value"
    assert e.definitions[0].term.value == pytest.approx(
        gradient.value * 0.01 / Explainer(model, TOKENS, TARGETS).clipping.norm
    )


@pytest.mark.parametrize(
    ("name", "index", "en", "zh"),
    [
        ("q_turned", (0, 1, 2, 3), "columns 1 and 3 are a pair, which turns by b^(−2/4) = 0.333333 radians a "
         "position; this is position 2.", "第 1、3 列是一对，每个位置转 b^(−2/4) = 0.333333 弧度；这里是位置 2。"),
        ("k_turned", (0, 0, 1, 4), "column 4 stays", "第 4 列不变"),
        ("keys", (0, 1, 2, 3), "head 1 of the queries reads head 0", "第 1 个查询头读第 0 个键值头"),
        ("weights", (0, 1, 2, 0), "key 0 lies outside the window of query 2", "键 0 不在查询 2 的窗口内"),
    ],
)  # fmt: skip
def test_what_the_variants_of_attention_say(name, index, en, zh):
    e = explain(model_of(VARIANTS), TOKENS, TARGETS, f"blocks.0.attn.{name}", index)
    assert en in text(e)
    assert zh in text(e, "zh")


def test_zero_gradients_of_a_window():
    explainer = Explainer(model_of(VARIANTS), TOKENS, TARGETS)
    said = {
        i: explainer.explain("blocks.0.attn.scores", (0, 0, *i), grad=True).note for i in ((0, 0), (2, 0), (0, 1))
    }
    assert "sees one key only" in said[0, 0].en
    assert all("outside the window" in said[i].en for i in ((2, 0), (0, 1)))
    assert not explainer.explain("blocks.0.attn.scores", (0, 0, 2, 1), grad=True).note


@pytest.mark.parametrize(
    ("name", "index", "en", "zh"),
    [
        ("wte", (5, 0), "token 5 does not occur", "没有词元 5"),
        ("wpe", (3, 0), "has 3 positions", "只有 3 个位置"),
        ("blocks.0.attn.scores", (0, 0, 0, 0), "query 0 sees one key only", "只能看到一个键"),
        ("blocks.0.attn.scores", (0, 0, 1, 2), "query 1 must not see key 2", "查询 1 不能看到其后的键 2"),
    ],
)
def test_a_zero_gradient_says_why(name, index, en, zh):
    e = explain(model_of(CONFIGS["seed"]), TOKENS, TARGETS, name, index, grad=True)
    assert e.value == 0
    assert en in e.note.en
    assert zh in text(e, "zh")


def test_a_masked_weight_says_so():
    e = explain(model_of(CONFIGS["seed"]), TOKENS, TARGETS, "blocks.0.attn.weights", (0, 0, 1, 2))
    assert "masked" in e.note.en
    assert "made from" not in text(e)


@pytest.mark.parametrize("dtype", PRECISION)
def test_what_cancels_is_zero_up_to_rounding(dtype):
    """A bias of all keys shifts each row of scores by one number, which softmax does not notice."""
    explainer = Explainer(model_of(CONFIGS["seed"], dtype), TOKENS, TARGETS)
    keys = explainer.explain("blocks.0.attn.b_qkv", (5,), grad=True)
    assert keys.cancels
    assert "zero up to rounding" in text(keys)
    assert not explainer.explain("blocks.0.attn.b_qkv", (1,), grad=True).cancels


def test_the_loss_lists_the_targets_logits_first():
    e = explain(model_of(CONFIGS["seed"]), TOKENS, TARGETS, "loss")
    targets = {(b, t, y) for b, row in enumerate(TARGETS) for t, y in enumerate(row)}
    assert {s.index for s in e.sources[:6]} == targets
    rest = [s.value for s in e.sources[6:]]
    assert rest == sorted(rest, reverse=True)


def test_chinese_has_no_english_words_between_numbers():
    model = model_of(CONFIGS["seed"])
    gradient = text(explain(model, TOKENS, TARGETS, "wte", (2, 1), grad=True), "zh")
    update = text(explain(model, TOKENS, TARGETS, "wte.update", (2, 1), max_grad_norm=0.01), "zh")
    assert "∂E = ∂loss/∂tok[0,0,1] =" in gradient
    assert "中心差分：" in gradient
    assert "第 1 步" in update
    for word in ("slope", "step", "before"):
        assert word not in gradient + update


def test_depth_follows_the_inputs():
    model = model_of(CONFIGS["seed"])
    e = explain(model, TOKENS, TARGETS, "blocks.0.attn.weights", (0, 0, 2, 1), depth=3, width=2)
    assert [c.name for c in e.children] == ["blocks.0.attn.scores"] * 2
    assert {g.name for c in e.children for g in c.children} == {"blocks.0.attn.q", "blocks.0.attn.k"}
    g = explain(model, TOKENS, TARGETS, "lm_head.w", (0, 1), grad=True, depth=2, width=2)
    assert {(c.name, c.gradient) for c in g.children} == {("logits", True), ("ln_f", False)}


def test_text_in_both_languages():
    e = explain(model_of(CONFIGS["seed"]), TOKENS, TARGETS, "logits", (0, 1, 2), depth=2)
    assert "terms, largest first" in text(e)
    assert "equations/linear.py:" in text(e)
    assert "线性层" in text(e, "zh")
    gradient = text(explain(model_of(CONFIGS["seed"]), TOKENS, TARGETS, "wte", (2, 1), grad=True))
    assert gradient.startswith("∂loss/∂wte[2,1] = ")
    assert "central difference" in gradient


def test_the_rest_is_summed_on_one_line():
    e = explain(model_of(CONFIGS["seed"]), TOKENS, TARGETS, "logits", (0, 1, 2))
    shown = text(e, shown=2)
    assert f"the rest, {len(e.terms) - 2} terms" in shown
    numbers = [float(line.split()[0].replace("−", "-")) for line in shown.splitlines() if "  sum" in line]
    assert numbers == [pytest.approx(e.value, rel=1e-6)]


@pytest.mark.parametrize(
    ("name", "index", "grad", "said"),
    [
        ("blocks.0.attn.wieghts", (0, 0, 1, 1), False, "Nearest: blocks.0.attn.weights"),
        ("logits", (), False, r"give an index: logits has shape \(2, 3, 7\)"),
        ("logits", (0, 1), False, r"logits has shape \(2, 3, 7\)"),
        ("logits", (0, 1, 7), False, r"The last one is logits\[1,2,6\]"),
        ("logits", (0, 1, -8), False, r"logits\[0,1,-8\] does not exist"),
        ("tokens", (0, 1), True, "given, not learned"),
        ("wte.m", (0, 1), True, "comes after the loss"),
        ("next.p", (0,), True, "next.p is not part of the loss and has no gradient. Ask for logits."),
        ("next.token", (), True, "next.token is not part of the loss"),
        ("next.logits", (0,), True, "next.logits is not part of the loss"),
        ("", (), False, "nothing is called ''"),
    ],
)
def test_wrong_targets(name, index, grad, said):
    with pytest.raises(ExplainError, match=said):
        explain(model_of(CONFIGS["seed"]), TOKENS, TARGETS, name, index, grad=grad)


@pytest.mark.parametrize(("name", "grad"), [("logits", False), ("logits", True), ("lm_head.w.update", False)])
def test_negative_indices_count_from_the_end(name, grad):
    model = model_of(CONFIGS["seed"])
    shape = model.parameters()["lm_head.w"].shape if "." in name else (2, 3, 7)
    last, back = (
        explain(
            model,
            TOKENS,
            TARGETS,
            name,
            tuple(k % n if positive else k for k, n in zip((-1,) * len(shape), shape, strict=True)),
            grad=grad,
        )
        for positive in (True, False)
    )
    assert back.as_json() == last.as_json()
    assert back.index == tuple(n - 1 for n in shape)


def test_without_targets_there_is_no_loss():
    model = model_of(CONFIGS["seed"])
    assert explain(model, TOKENS, None, "logits", (0, 0, 0)).terms
    for name, index in (("loss", ()), ("wte.m", (0, 0))):
        with pytest.raises(ExplainError):
            explain(model, TOKENS, None, name, index)
    with pytest.raises(ExplainError, match="needs a loss"):
        explain(model, TOKENS, None, "wte", (0, 0), grad=True)


def test_nothing_is_left_behind():
    """Explaining changes neither parameters nor gradients."""
    model = model_of(CONFIGS["seed"])
    before = {n: p.data.copy() for n, p in model.parameters().items()}
    explain(model, TOKENS, TARGETS, "wte", (2, 1), grad=True)
    explain(model, TOKENS, TARGETS, "wte.update", (2, 1))
    for name, p in model.parameters().items():
        assert p.grad is None
        assert np.array_equal(p.data, before[name])


def test_arithmetic_reads_like_paper():
    x = Tensor(np.array([[1.0, 3.0]]))
    norm = registry["layer_norm"]
    result = norm.forward(x.data, eps=0.0)[0]
    term = norm.terms((0, 1), (x.data,), result, eps=0.0)
    assert arithmetic.expression(term) == "(3 − 2) / √(1 + 0)"
    lines = {part.label: arithmetic.expression(part) for part in labelled(term)}
    assert lines == {"mean": "(1 + 3) / 2", "var": "((1 − 2)² + (3 − 2)²) / 2"}
    negative = replace(term, parts=(term.parts[0], term.parts[1]))
    assert arithmetic.expression(negative, arithmetic.letter) == "(x[0,1] − mean) / √(var + eps)"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"depth": 0}, "depth is 0, but must be an integer of at least 1."),
        ({"depth": -3}, "depth is -3, but must be an integer of at least 1."),
        ({"width": 0}, "width is 0, but must be an integer of at least 1."),
        ({"index": (0, 0.0, 1)}, "the index of logits is (0, 0.0, 1). Use integers, as in (0, 2)."),
        ({"index": "0,1"}, "the index of logits is '0,1'. Use integers, as in (0, 2)."),
        ({"index": 5, "grad": True}, "the index of logits is 5. Use integers, as in (0, 2)."),
    ],
    ids=str,
)
def test_wrong_settings(settings, said):
    with pytest.raises(ExplainError) as error:
        explain(model_of(CONFIGS["seed"]), TOKENS, TARGETS, "logits", **{"index": (0, 0, 0), **settings})
    assert str(error.value) == said
