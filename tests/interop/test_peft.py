"""Adapters in PEFT's form: what is written, and that reading it back merges what training merges."""

import json
from dataclasses import replace

import numpy as np
import pytest

from byhand.config import TrainConfig
from byhand.errors import ByhandError
from byhand.interop import exchange
from byhand.layers.adapter import merged
from byhand.model import declared
from byhand.runs import checkpoint
from byhand.runs.contents import Checkpoint
from interop import foreign_cases as foreign
from interop.run_cases import GPT2, LLAMA, logits, parameters

ALL = "attn.*,mlp.*,lm_head.w"
MODELS = {
    "gpt2": replace(GPT2, lora=3, lora_on=ALL),
    "llama": replace(LLAMA, lora=3, lora_alpha=5, lora_on=ALL),
    "neighbours": replace(LLAMA, lora=2, rope_pairing="neighbours", lora_on="attn.*"),
}
TOKENS = [[1, 2, 3, 4, 5, 4, 3, 2], [9, 8, 7, 6, 5, 4, 3, 2]]


def run_of(config, arrays):
    return Checkpoint(TrainConfig(model=config), arrays, {}, {"step": 0, "text": {}})


def placed(config, place):
    """Write a model's adapter and its base as a run; return the arrays."""
    arrays = parameters(config)
    base = replace(config, lora=0, lora_alpha=None, lora_on=GPT2.lora_on)
    checkpoint.save(place / "base", run_of(base, {name: arrays[name] for name in declared(base)}))
    exchange.write(run_of(config, arrays), "peft", place / "adapter")
    return arrays


@pytest.mark.parametrize("name", MODELS)
def test_an_adapter_that_went_out_and_came_back_computes_the_same(name, tmp_path):
    config = MODELS[name]
    arrays = placed(config, tmp_path)
    found, _ = exchange.imported(tmp_path / "adapter", base=tmp_path / "base")
    expected, base = logits(config, arrays, TOKENS), merged(config, arrays)[0]
    np.testing.assert_allclose(logits(found.config, found.arrays, TOKENS), expected, atol=1e-4)
    plain = {n: arrays[n] for n in declared(base)}
    assert np.abs(logits(base, plain, TOKENS) - expected).max() > 0.1, "the adapter does nothing"


def test_names_and_shapes_are_pefts(tmp_path):
    for name, module, width in (
        ("gpt2", "transformer.h.1.attn.c_attn", 96),
        ("llama", "model.layers.1.self_attn.v_proj", 16),
    ):
        place = tmp_path / name
        arrays = placed(MODELS[name], place)
        written = foreign_arrays(place / "adapter" / "adapter_model.safetensors")
        down, up = (written[f"base_model.model.{module}.lora_{end}.weight"] for end in "AB")
        np.testing.assert_array_equal(down, arrays["blocks.1.attn.w_qkv_a"].T)
        np.testing.assert_array_equal(up, arrays["blocks.1.attn.w_qkv_b"][:, -width:].T)
        settings = json.loads((place / "adapter" / "adapter_config.json").read_text())
        assert (settings["r"], settings["lora_alpha"]) == (3, {"gpt2": 6, "llama": 5}[name])
        assert settings["fan_in_fan_out"] is (name == "gpt2")
        assert ".".join(module.split(".")[-2:]) in settings["target_modules"]
        assert "lm_head" in settings["target_modules"]


def foreign_arrays(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + length])
    return {
        name: np.frombuffer(content[8 + length :][slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
        for name, entry in head.items() if name != "__metadata__"
    }  # fmt: skip


def test_adapters_of_q_and_v_alone(tmp_path):
    arrays = placed(MODELS["llama"], tmp_path)
    rng, module = np.random.default_rng(3), "base_model.model.model.layers.0.self_attn."
    made = {
        f"{module}{part}.lora_{end}.weight": rng.standard_normal(shape).astype(np.float32)
        for part, width in (("q_proj", 32), ("v_proj", 16))
        for end, shape in (("A", (2, 32)), ("B", (width, 2)))
    }  # fmt: skip
    (tmp_path / "adapter" / "adapter_model.safetensors").write_bytes(foreign.safetensors(made))
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "use_rslora": True}
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(config))
    found, _ = exchange.imported(tmp_path / "adapter", base=tmp_path / "base")
    w, expected = found.arrays["blocks.0.attn.w_qkv"], arrays["blocks.0.attn.w_qkv"].copy()
    for part, columns in (("q_proj", slice(0, 32)), ("v_proj", slice(48, 64))):
        down, up = (made[f"{module}{part}.lora_{end}.weight"] for end in "AB")
        expected[:, columns] += 4 / 2**0.5 * (up @ down).T
    np.testing.assert_allclose(w, expected, atol=1e-5)
    np.testing.assert_array_equal(found.arrays["blocks.1.attn.w_qkv"], arrays["blocks.1.attn.w_qkv"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"peft_type": "IA3"}, "peft_type is 'IA3', which byhand lacks"),
        ({"use_dora": True}, "use_dora is true, which byhand lacks"),
        ({"rank_pattern": {"q_proj": 4}}, "rank_pattern is"),
        (
            {"init_lora_weights": "pissa_niter_4"},
            "init_lora_weights is 'pissa_niter_4', which byhand lacks. It changed",
        ),
        ({"init_lora_weights": "olora"}, "path_initial_model_for_weight_conversion"),
        ({"new_key": 2}, "new_key is 2, which byhand lacks"),
        ({"r": 3, "lora_alpha": 1e39}, "with its lora_alpha 1e+39, "),
        (
            {"r": 3, "target_modules": ["q_proj"]},
            "target_modules differ about base_model.model.model.layers.0.self_attn.k",
        ),
        ({"r": 3, "target_modules": "all-linear"}, "target_modules differ about base_model.model.lm_head"),
        ({"r": 3, "target_modules": ["x"], "layers_to_transform": [0]}, "target_modules differ about"),
        (
            {"r": 3, "target_modules": ".*q_proj"},
            "target_modules differ about base_model.model.model.layers.0.self_attn.k",
        ),
        ({"r": 3, "target_modules": "("}, "pattern of layer names '(' is not valid"),
        ({"peft_type": None}, "it names no peft_type"),
        ({"lora_alpha": "16"}, "is not a LoRA configuration: lora_alpha is not a number"),
        ({"r": 4}, "r is 4 in adapter_config.json, but arrays have rank 3. Use files of one adapter."),
        ({"r": 2.5}, "is not a LoRA configuration: r is not a rank"),
        ([], "is not a LoRA configuration"),
        (None, "which this base model lacks"),
        ("width", "has another width than the base model"),
    ],
)
def test_what_cannot_be_merged_is_said_in_one_line(settings, words, tmp_path):
    placed(MODELS["llama"], tmp_path)
    folder, usual = tmp_path / "adapter", {"peft_type": "LORA", "r": 2, "lora_alpha": 4}
    if settings in (None, "width"):
        name = "base_model.model.model.layers.0.self_attn.q_proj" if settings else "base_model.model.x.q_proj"
        made = {f"{name}.lora_{end}.weight": np.ones((4, 4), np.float32) for end in "AB"}
        (folder / "adapter_model.safetensors").write_bytes(foreign.safetensors(made))
    written = settings if isinstance(settings, list) else usual | (settings if isinstance(settings, dict) else {})
    if isinstance(written, dict) and written["peft_type"] is None:
        del written["peft_type"]
    if isinstance(settings, dict) and isinstance(settings.get("target_modules"), str):
        pytest.importorskip("regex")
    (folder / "adapter_config.json").write_text(json.dumps(written))
    with pytest.raises(ByhandError) as error:
        exchange.imported(folder, base=tmp_path / "base")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_bases_and_adapters_that_are_not_there(tmp_path):
    arrays = placed(MODELS["gpt2"], tmp_path)
    with pytest.raises(ByhandError, match=r"is an adapter of PEFT\. Name its base"):
        exchange.imported(tmp_path / "adapter")
    with pytest.raises(ByhandError, match=r"has no adapter_config.json: it is not an adapter"):
        exchange.imported(tmp_path / "base", base=tmp_path / "base")
    plain = run_of(GPT2, {name: arrays[name] for name in declared(GPT2)})
    with pytest.raises(ByhandError, match=r"this run has no adapter\. Use --to hf"):
        exchange.write(plain, "peft", tmp_path / "none")
    (tmp_path / "adapter" / "adapter_model.safetensors").unlink()
    with pytest.raises(ByhandError, match=r"cannot read .*adapter_model.safetensors"):
        exchange.imported(tmp_path / "adapter", base=tmp_path / "base")


def test_an_adapter_of_a_base_that_several_families_have_finds_its_names(tmp_path):
    """A Phi-3 whose heads turn whole could be a Llama, whose layers have other names."""
    arrays = parameters(replace(LLAMA, tied_embeddings=False))
    checkpoint.save(tmp_path / "base", run_of(replace(LLAMA, tied_embeddings=False), arrays))
    (tmp_path / "adapter").mkdir()
    name, rng = "base_model.model.model.layers.0.mlp.gate_up_proj.lora", np.random.default_rng(1)
    width = 2 * arrays["blocks.0.mlp.w_gate"].shape[1]
    shapes = {f"{name}_A.weight": (2, LLAMA.d_model), f"{name}_B.weight": (width, 2)}
    made = {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}
    (tmp_path / "adapter" / "adapter_model.safetensors").write_bytes(foreign.safetensors(made))
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 2}
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(config))
    found, _ = exchange.imported(tmp_path / "adapter", base=tmp_path / "base")
    added = (made[f"{name}_B.weight"] @ made[f"{name}_A.weight"]).T
    whole = np.concatenate(
        [found.arrays[f"blocks.0.mlp.{part}"] - arrays[f"blocks.0.mlp.{part}"] for part in ("w_gate", "w_up")], 1
    )
    np.testing.assert_allclose(whole, added, atol=1e-4)
