"""An explanation as JSON: trees of numbers with names, each number the trace's own; no fact only in a sentence."""

import json
import subprocess
import sys

import numpy as np
import pytest

import byhand as bh
from byhand.book.explain.explainer import Explainer
from byhand.engine.operations import operate
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


@pytest.mark.parametrize("config", stored_settings()[::2], ids=setting_name)
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
            assert tree["value"] == worked(tree, {})
            scale = sum(abs(part["value"]) for part in tree.get("parts", ()))
            assert tree["value"] == pytest.approx(plain["value"], rel=1e-12, abs=1e-12 * max(scale, 1e-3))
            for source in (
                {**part["source"], "value": part["value"]} for part in written_out(tree) if "source" in part
            ):
                if "saved_by" in source:
                    array = explainer.trace.saved(source["saved_by"])[source["saved"]]
                else:
                    array = arrays[source["gradient"]][source["name"]]
                assert source["value"] == float(array[tuple(source["index"])]), source


def test_a_gradient_is_the_derivatives_own_arithmetic_in_each_use():
    (config, *_) = stored_settings()
    explainer = Explainer(bh.TinyGPT(config, arrays=parameters(config)), *batch(config))
    plain = said(explainer, "lm_head.w", (1, 2), grad=True)
    (use,), (tree,) = plain["uses"], plain["terms"]["parts"]
    assert (use["equation"], use["input"], use["results"]) == ("linear", "weight", ["logits"])
    assert len(tree["parts"]) == 10
    for part in tree["parts"]:
        cotangent, x = part["parts"]
        b, t, v = cotangent["source"]["index"]
        assert part["op"] == "product"
        assert cotangent["source"] == {"name": "logits", "gradient": True, "index": [b, t, 2]}
        assert x["source"] == {"name": "ln_f", "gradient": False, "index": [b, t, 1]}
        assert v == 2
    first = max(tree["parts"], key=lambda part: abs(part["value"]))["parts"]
    assert [i["value"] for i in plain["inputs"][:2]] == [part["value"] for part in first]
    act = said(explainer, "blocks.0.mlp.pre", (0, 1, 2), grad=True)["terms"]["parts"]
    assert [part["op"] for part in act] == ["product"], "d (1 + tanh u)/2 and so on, not d times a number"
    assert len(list(written_out(act[0]))) > 10


@pytest.mark.parametrize("config", stored_settings()[1::2], ids=setting_name)
def test_each_use_has_its_part_of_the_tree(config):
    explainer = Explainer(bh.TinyGPT(config, arrays=parameters(config)), *batch(config))
    rng = np.random.default_rng(8)
    for name, d in explainer.gradients.by_name.items():
        index = tuple(int(rng.integers(n)) for n in d.shape)
        plain = said(explainer, name, index, grad=True)
        assert [use["equation"] for use in plain["uses"]] == [
            use.equation for use in explainer.gradients.terms(name, index)
        ]
        if plain["uses"]:
            values = [part["value"] for part in plain["terms"]["parts"]]
            assert values == [use["value"] for use in plain["uses"]]
            assert sum(values) == pytest.approx(plain["value"], rel=1e-10, abs=1e-12)
    assert "uses" not in said(explainer, "logits", (0, 0, 1))


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
    clipped = next(part for part in written_out(plain["terms"]) if part["label"] == "g[1,2]")
    whole, factor = clipped["parts"]
    assert whole["source"] == {"name": "wte", "gradient": True, "index": [1, 2]}
    assert whole["value"] == float(explainer.gradients.by_name["wte"][1, 2])
    assert whole["value"] * factor["value"] == pytest.approx(clipped["value"], rel=1e-12)
    norm = explainer.clipping.norm
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
    """Each row's largest logit occurs in every exponent: written out each time, it would fill gigabytes."""
    config = bh.ModelConfig(vocab_size=256, seq_len=4, d_model=8, n_layers=1, n_heads=2)
    plain = Explainer(bh.TinyGPT(config, seed=1), [[1, 2, 3]], [[2, 3, 4]]).explain("loss", ()).as_json()
    assert len(json.dumps(plain["terms"])) < 1_500_000
    assert worked(plain["terms"], {}) == plain["terms"]["value"]


def test_a_cell_opens_no_table_of_where():
    code = """
import sys, byhand as bh
model = bh.TinyGPT(bh.ModelConfig(vocab_size=7, seq_len=4, d_model=4, n_layers=1, n_heads=2))
bh.explain(model, [[1, 2, 3]], None, "blocks.0.attn.weights", (0, 0, 2, 1)).as_json()
print([name for name in ("absent", "places", "settings") if f"byhand.book.finding.{name}" in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"
