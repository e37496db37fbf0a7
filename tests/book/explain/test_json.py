"""An explanation as JSON: trees of numbers with names, each number the trace's own; no fact only in a sentence."""

import json

import numpy as np
import pytest

import byhand as bh
from byhand.book.explain.explainer import Explainer
from byhand.engine.terms import operate
from model_cases import batch, parameters, setting_name, stored_settings


def said(explainer, name, index, **how):
    """Return an explanation as a JSON reader gets it."""
    return json.loads(json.dumps(explainer.explain(name, index, **how).as_json()))


def written_out(tree):
    """Yield every part that is written out."""
    yield tree
    for part in tree.get("parts", ()):
        yield from written_out(part)


def worked(tree, defined):
    """Work a tree out from its leaves alone, by the names of its operations."""
    if "ref" in tree:
        return defined[tree["ref"]]
    if "op" not in tree:
        return tree["value"]
    values = [worked(part, defined) for part in tree["parts"]]
    value = operate(tree["op"], values)
    if "id" in tree:
        defined[tree["id"]] = value
    return value


@pytest.mark.parametrize("config", stored_settings(), ids=setting_name)
def test_trees_are_the_arithmetic_of_the_trace(config):
    explainer = Explainer(bh.TinyGPT(config, arrays=parameters(config)), *batch(config), None, 0.05)
    arrays = {False: explainer.trace.values, True: explainer.gradients.by_name}
    rng = np.random.default_rng(7)
    for name in (*explainer.model.parameters(), *explainer.trace.made):
        index = tuple(int(rng.integers(n)) for n in explainer.trace.tensor(name).shape)
        for grad in (False, True):
            plain = said(explainer, name, index, grad=grad)
            assert (plain["name"], tuple(plain["index"]), plain["gradient"]) == (name, index, grad)
            assert plain["value"] == float(arrays[grad][name][index])
            tree = plain["terms"]
            if tree is None:
                assert plain["note"]["code"] in ("parameter", "given", "loss")
                continue
            assert tree["value"] == plain["sum_of_terms"] == worked(tree, {})
            scale = sum(abs(part["value"]) for part in tree.get("parts", ()))
            assert tree["value"] == pytest.approx(plain["value"], rel=1e-12, abs=1e-12 * max(scale, 1e-3))
            for source in (
                {**part["source"], "value": part["value"]} for part in written_out(tree) if "source" in part
            ):
                array = arrays[source["gradient"]][source["name"]]
                assert source["value"] == float(array[tuple(source["index"])]), source


def test_a_gradient_is_a_sum_of_cotangents_times_slopes():
    (config, *_) = stored_settings()
    explainer = Explainer(bh.TinyGPT(config, arrays=parameters(config)), *batch(config))
    plain = said(explainer, "lm_head.w", (1, 2), grad=True)
    assert plain["terms"]["op"] == "sum"
    assert len(plain["terms"]["parts"]) == 10
    for part in plain["terms"]["parts"]:
        cotangent, slope = part["parts"]
        assert part["op"] == "product"
        assert cotangent["source"]["name"] == "logits"
        assert cotangent["source"]["gradient"] is True
        b, t, v = cotangent["source"]["index"]
        assert v == 2
        assert slope == {
            "label": f"∂logits[{b},{t},2]/∂lm_head.w[1,2]",
            "value": float(explainer.trace.tensor("ln_f").data[b, t, 1]),
        }
    assert [s["target"] for s in plain["inputs"][:1]] == [plain["terms"]["parts"][0]["parts"][0]["label"]]


@pytest.mark.parametrize("config", stored_settings(), ids=setting_name)
def test_the_derivative_of_each_use_is_written_down_to_what_it_reads(config):
    explainer = Explainer(bh.TinyGPT(config, arrays=parameters(config)), *batch(config))
    rng = np.random.default_rng(8)
    for name, d in explainer.gradients.by_name.items():
        index = tuple(int(rng.integers(n)) for n in d.shape)
        plain = said(explainer, name, index, grad=True)
        uses = plain["derivative"]
        assert [use["equation"] for use in uses] == [use.equation for use in explainer.gradients.terms(name, index)]
        if uses:
            total = sum(worked(use["terms"], {}) for use in uses)
            assert total == pytest.approx(plain["value"], rel=1e-10, abs=1e-12)
    assert "derivative" not in said(explainer, "logits", (0, 0, 1))


def test_an_update_by_muon_in_float32_is_ready_for_json():
    (config, *_) = stored_settings()
    muon = bh.Muon({"blocks.0.attn.w_qkv": 3})
    explainer = Explainer(bh.TinyGPT(config, arrays=parameters(config, np.float32)), *batch(config), muon)
    plain = said(explainer, "blocks.0.attn.w_qkv.theta", (1, 2))
    assert {"|n|", "O[1,2]"} <= {line["label"] for line in plain["definitions"]}


def test_a_clipped_gradient_is_written_as_the_whole_one_times_what_is_left():
    (config, *_) = stored_settings()
    explainer = Explainer(bh.TinyGPT(config, arrays=parameters(config)), *batch(config), None, 0.05)
    plain = said(explainer, "wte.m", (1, 2))
    clipped = next(part for part in written_out(plain["terms"]) if part["label"] == "g")
    whole, factor = clipped["parts"]
    assert whole["source"] == {"name": "wte", "gradient": True, "index": [1, 2]}
    assert whole["value"] == float(explainer.gradients.by_name["wte"][1, 2])
    assert whole["value"] * factor["value"] == pytest.approx(clipped["value"], rel=1e-12)
    norm = explainer.clipping().norm
    assert [part["value"] for part in factor["parts"]] == [0.05, norm]
    note = plain["note"]
    assert {k: note[k] for k in ("code", "step", "lr", "gradient_norm", "clipped_to")} == {
        "code": "update", "step": 1, "lr": explainer.optimizer.lr, "gradient_norm": norm, "clipped_to": 0.05
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "index", "grad", "code", "facts"),
    [
        ("wpe", (0, 0), False, "parameter", {}),
        ("tokens", (0, 0), False, "given", {}),
        ("loss", (), True, "loss", {}),
        ("blocks.0.attn.weights", (0, 0, 1, 2), False, "masked", {"query": 1, "key": 2}),
        ("blocks.0.attn.scores", (0, 0, 1, 2), True, "masked", {"query": 1, "key": 2}),
        ("wte", (6, 0), True, "zero", {}),
    ],
)
def test_notes_have_codes_and_both_languages(name, index, grad, code, facts):
    (config, *_) = stored_settings()
    explainer = Explainer(bh.TinyGPT(config, arrays=parameters(config)), *batch(config))
    note = said(explainer, name, index, grad=grad)["note"]
    assert {k: note[k] for k in note if k not in ("en", "zh")} == {"code": code, **facts}
    assert note["en"].isascii()
    assert not note["zh"].isascii()


def test_a_loss_over_a_vocabulary_stays_small():
    """Each row's largest logit stands in every exponent: written out each time, it would fill gigabytes."""
    config = bh.ModelConfig(vocab_size=256, seq_len=4, d_model=8, n_layers=1, n_heads=2)
    plain = Explainer(bh.TinyGPT(config, seed=1), [[1, 2, 3]], [[2, 3, 4]]).explain("loss", ()).as_json()
    assert len(json.dumps(plain["terms"])) < 1_500_000
    assert worked(plain["terms"], {}) == plain["terms"]["value"]
