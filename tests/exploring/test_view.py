"""A view beside the model itself: what it shows, cuts, adds up and predicts."""

import json
from dataclasses import replace

import numpy as np
import pytest

import byhand as bh
from byhand.book.explain.explainer import Explainer
from byhand.errors import ByhandError, DataError
from byhand.exploring.changes import Change
from byhand.exploring.regions import regions
from byhand.exploring.stages import stream
from byhand.exploring.view import LARGEST, NO_TARGET, Subject, View
from model_cases import batch, drawn_config, parameters

SEEDS = range(12)


def view_of(seed, dtype=np.float64, **settings):
    config = replace(drawn_config(seed), **settings)
    tokens, targets = (np.asarray(x)[0].tolist() for x in batch(config))
    texts = {i: bytes([97 + i % 26]) for i in range(config.vocab_size)}
    model = bh.TinyGPT(config, arrays=parameters(config, dtype))
    return View(Subject("drawn", 3, model, list, texts, "token"), tokens, [*targets[:-1], NO_TARGET])


def after(view, *changes):
    return View(view.subject, view.tokens, view.targets, changes, view)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_stage_is_the_models_prediction(seed):
    view = view_of(seed)
    z = view.questions.array("logits")[0]
    p = np.exp(z - z.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    last = view.stages()[-1]
    for row, top, true, target in zip(p, last["top"], last["true"], view.targets, strict=True):
        assert [pair[1] for pair in top] == pytest.approx(np.sort(row)[::-1][: len(top)].tolist())
        assert true is None if target == NO_TARGET else true[0] == pytest.approx(row[target])


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_sum_to_the_logit(seed):
    view = view_of(seed, logit_softcap=0.0)
    if view.model.config.norm_position == "post":
        with pytest.raises(DataError, match="do not add up"):
            view.shares(0, 0, None)
        return
    z = view.questions.array("logits")[0]
    for t, v, against in [(len(z) - 1, 2, None), (0, 1, 3)]:
        found = view.shares(t, v, against)
        expected = z[t, v] - (z[t, against] if against is not None else 0)
        assert found["total"] == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rule_covers_what_each_element_reads_and_no_more(seed):
    """Of elements that it was not found from."""
    view, rng = view_of(seed), np.random.default_rng(seed)
    names = [(name, gradient) for name in view.places for gradient in (False, True)]
    for name, gradient in [names[k] for k in rng.permutation(len(names))[:12]]:
        if gradient and (name not in view.questions.gradients.by_name or name == "loss"):
            continue
        rules = {(r["name"], r["gradient"]): r for r in regions(view.questions, name, gradient)}
        shape = view.questions.trace.tensor(name).shape
        for index in map(tuple, rng.integers(0, shape, (4, len(shape))).tolist()):
            read = {}
            for element in view.questions.answer(name, index, gradient).elements:
                read.setdefault((element.name, element.gradient), []).append(element.index)
            for array in rules if read and not gradient else read:  # cotangents of 0 are read, and not written
                ends = ends_of(rules[array], index)
                last = np.array(view.questions.trace.tensor(array[0]).shape) - 1
                if ends is None:
                    continue
                if array not in read:
                    assert any(b < 0 or a > n for (a, b), n in zip(ends, last, strict=True)), (name, index, array)
                    continue
                low, high = np.min(read[array], axis=0), np.max(read[array], axis=0)
                within = [
                    max(a, 0) <= x and y <= min(b, n) for (a, b), x, y, n in zip(ends, low, high, last, strict=True)
                ]
                assert all(within), (name, gradient, index, array)
                if not gradient:
                    cut = [[max(a, 0), min(b, n)] for (a, b), n in zip(ends, last, strict=True)]
                    assert cut == np.transpose([low, high]).tolist(), (name, index, array)


def ends_of(rule, index):
    """Return the first and the last place on each axis that a rule leads to; None if there is no rule."""
    counted = [*index, *(index[axis] // d for axis, d in rule["divided"])]
    if rule["axes"] is None:
        return None
    return [[c[0] + sum(a * i for a, i in zip(c[1:], counted, strict=True)) for c in axis] for axis in rule["axes"]]


@pytest.mark.parametrize(("name", "gradient", "read"), [
    ("blocks.0.attn.merged", False, "blocks.0.attn.mixed"),
    ("blocks.0.attn.qkv", True, "blocks.0.attn.q"),
    ("blocks.0.attn.qkv", True, "blocks.0.attn.v"),
])  # fmt: skip
def test_heads_have_a_rule(name, gradient, read):
    view = view_of(1, n_heads=4, n_kv_heads=2)
    (rule,) = [each for each in regions(view.questions, name, gradient) if each["name"] == read]
    assert rule["axes"] is not None


@pytest.mark.parametrize("terms", [1, 3, 100])
def test_a_cut_answer_says_what_is_left(terms):
    view = view_of(1)

    def check(tree):
        parts = [part["value"] for part in tree.get("parts", ())]
        if tree.get("op") == "sum":
            rest = tree.get("rest", {"count": 0, "value": 0.0})
            assert len(parts) <= terms
            assert sum(parts) + rest["value"] == pytest.approx(tree["value"], rel=1e-9, abs=1e-12)
        for part in tree.get("parts", ()):
            check(part)

    for name in ("logits", "blocks.0.x_mid", "loss"):
        index = tuple(n - 1 for n in view.questions.trace.tensor(name).shape)
        whole, cut = (view.questions.explain(name, index, difference=False).as_json(most) for most in (None, terms))
        check(cut["terms"])
        assert cut["value"] == whole["value"]
        assert len(cut["inputs"]) <= max(terms, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_changes_are_those_of_a_model_made_so(seed):
    view, rng = view_of(seed), np.random.default_rng(seed)
    name = str(rng.choice(list(view.model.parameters())))
    index = tuple(int(rng.integers(n)) for n in view.model.parameters()[name].shape)
    value = float(view.model.parameters()[name].data[index]) + 1e-5
    changed = after(view, Change(name, index, value))
    arrays = {n: t.data.copy() for n, t in view.model.parameters().items()}
    arrays[name][index] = value
    with bh.no_grad():
        loss = bh.TinyGPT(view.model.config, arrays=arrays).loss([view.tokens], [view.targets]).item()
    found = changed.predicted()
    assert found["after"] == loss
    assert changed.id != view.id
    if view.model.parameters()[name].requires_grad:
        assert found["predicted"] == pytest.approx(loss, abs=1e-8)
    first = changed.compared(view)["first"]
    assert first == name
    assert view.compared(view) == {"first": None, "places": []}


def test_a_head_switched_off_adds_nothing():
    view = view_of(4, n_heads=2, n_kv_heads=None, lora=0)
    off = after(view, Change(head=(1, 1)))
    assert not np.allclose(off.questions.array("blocks.1.attn.out"), view.questions.array("blocks.1.attn.out"))
    for block, head in ((1, 2), (2, 0), (-1, 0)):
        with pytest.raises(DataError, match="there is no head"):
            after(view, Change(head=(block, head)))


def test_the_mask_may_go_and_nothing_is_predicted_then():
    view = view_of(
        next(seed for seed in SEEDS if drawn_config(seed).causal and not drawn_config(seed).attention_window)
    )
    found = after(view, Change(mask=False))
    assert found.predicted()["predicted"] is None
    assert found.questions.array("blocks.0.attn.weights")[0, 0, 0, 1:].all()


def test_along_a_parameter_the_loss_passes_through_the_pass():
    view = view_of(2)
    found = view.along("blocks.0.mlp.w_out", (1, 2), 5, 1e-4)
    (a, low), *_, (b, high) = found["losses"]
    assert found["losses"][2] == [found["value"], pytest.approx(float(view.questions.trace.result.data), rel=1e-12)]
    assert (high - low) / (b - a) == pytest.approx(found["slope"], rel=1e-5, abs=1e-9)


def test_a_matrix_is_sent_by_rows_and_columns():
    view = view_of(0)
    logits = view.questions.array("logits")[0]
    part, whole = view.matrix("logits", False, 0, (1, 3), (2, 6))
    assert part.tolist() == logits[1:3, 2:6].astype(np.float32).tolist()
    assert whole == logits.shape
    assert view.matrix("loss", False, 0, None, None).whole == (1, 1)
    for asked in [
        ("logits", False, 1, None, None),
        ("nothing", False, 0, None, None),
        ("tokens", True, 0, None, None),
    ]:
        with pytest.raises(ByhandError):
            view.matrix(*asked)
    large = view_of(0)
    large.questions.trace.leaves["wte"].data = np.zeros((1, LARGEST + 1))
    with pytest.raises(DataError, match="by rows and columns"):
        large.matrix("wte", False, 0, None, None)


def test_the_stream_begins_before_the_first_block():
    for seed in SEEDS:
        view = view_of(seed)
        first, *halves = stream(view.questions.trace, view.model)
        config = view.model.config
        assert first == ("ln_0" if config.embedding_norm else "x" if config.positions == "learned" else "tok")
        assert len(halves) == 2 * config.n_layers
        assert set(halves) <= set(view.places)


@pytest.mark.parametrize("value", [1e30, float("nan")])
def test_numbers_that_are_not_finite_are_shown_as_text(value):
    view = after(view_of(0, np.float32), Change("wte", (0, 0), value), Change("wte", (1, 1), value))
    with np.errstate(all="ignore"):
        shown = [view.summary(), view.stages(), view.norms(True), view.predicted(), view.compared(view.base)]
        for name in view.places:
            index = (0,) * view.questions.array(name).ndim
            for gradient in (False, name in view.questions.gradients.by_name):
                shown.append(view.answer(name, index, gradient, 8))
    for each in shown:
        json.dumps(each, allow_nan=False)


def test_gradients_are_the_same_and_those_of_parameters_are_not_kept():
    lean = view_of(0)
    whole = Explainer(lean.model, [lean.tokens], [lean.targets])
    found, parameters = lean.questions.gradients.by_name, lean.model.parameters()  # also of one who did not wait
    assert lean.has_gradients
    assert set(found) == set(whole.gradients.by_name)
    for name in found:
        index = (0,) * lean.questions.array(name).ndim
        expected = whole.explain(name, index, grad=True, difference=False).as_json(8)
        assert lean.answer(name, index, True, 8) == expected
    for name in parameters.keys() & set(found) - {"wte"}:
        before, _ = found[name], found["wte"]
        assert found[name] is not before
