"""Folders of transformers, read: stored logits of transformers, shards, types, prefixes, and what is refused."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from byhand.config import ModelConfig, TrainConfig
from byhand.errors import ByhandError
from byhand.interop import exchange
from byhand.interop.hugging_face import settings
from byhand.interop.hugging_face.families import GPT2
from byhand.interop.hugging_face.tokens import of_folder
from byhand.interop.hugging_face.weights import Weights
from byhand.model import TinyGPT
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.symbols import visible_bytes
from interop import foreign_cases as foreign
from interop.run_cases import logits

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "exchange" / "transformers.json"
STORED = json.loads(FIXTURE.read_text(encoding="utf-8"))
LLAMA = foreign.settings("llama", 1)
SCALED = {"factor": 8.0, "rope_theta": 5e5, "original_max_position_embeddings": 10}
LLAMA3 = {**SCALED, "rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
YARN = {**SCALED, "rope_type": "yarn"}


def folder(place, config, change=None):
    arrays = foreign.drawn(foreign.shapes(config))
    return foreign.write_folder(place, config, {**arrays, **(change or {})})


def refused(path) -> str:
    with pytest.raises(ByhandError) as error:
        exchange.read(path)
    assert str(error.value).isprintable()
    return str(error.value)


@pytest.mark.parametrize("case", STORED, ids=lambda case: f"{case['config']['model_type']}-{case['seed']}")
def test_logits_are_those_that_transformers_stored(case, tmp_path):
    arrays = foreign.drawn(foreign.shapes(case["config"]), case["seed"])
    found = exchange.read(foreign.write_folder(tmp_path, case["config"], arrays))
    due = np.array(case["logits"])
    np.testing.assert_allclose(
        logits(found.config, found.arrays, foreign.tokens(case["config"]), "float32"), due, atol=1e-4
    )
    assert np.ptp(due) > 1


def test_shards_hold_the_same_model(tmp_path):
    arrays = foreign.drawn(foreign.shapes(LLAMA))
    whole = exchange.read(foreign.write_folder(tmp_path / "whole", LLAMA, arrays))
    place = tmp_path / "shards"
    place.mkdir()
    (place / "config.json").write_text(json.dumps(LLAMA))
    names = sorted(arrays)
    parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in parts.items():
        (place / file).write_bytes(foreign.safetensors({name: arrays[name] for name in part}))
    index = {"metadata": {}, "weight_map": {name: file for file, part in parts.items() for name in part}}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    found = exchange.read(place)
    assert all(np.array_equal(found.arrays[name], array) for name, array in whole.arrays.items())
    (place / "model-00001-of-00002.safetensors").rename(place / "aside")
    assert f"{place} lacks model-00001-of-00002.safetensors, which its model.safetensors.index.json" in refused(place)
    (place / "aside").rename(place / "model-00001-of-00002.safetensors")
    index["weight_map"][names[0]] = "model-00002-of-00002.safetensors"
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    assert f"differ about '{names[0]}'" in refused(place)
    index["weight_map"][names[0]] = "../model-00002-of-00002.safetensors"
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "is not an index of shards" in refused(place)


@pytest.mark.parametrize(("dtype", "bits"), [("F16", 10), ("BF16", 7), ("F64", 23)])
def test_other_types_become_float32_exactly(dtype, bits, tmp_path):
    arrays = foreign.drawn(foreign.shapes(LLAMA))
    step = np.uint32(1 << 23 - bits)
    rounded = {n: (a.view(np.uint32) // step * step).view(np.float32) for n, a in arrays.items()}  # fewer bits
    foreign.write_folder(tmp_path, LLAMA, arrays)
    content = foreign.safetensors(rounded, dict.fromkeys(rounded, dtype))
    (tmp_path / "model.safetensors").write_bytes(content)
    found = exchange.read(tmp_path)
    large = np.abs(rounded["model.embed_tokens.weight"]) > 1e-4  # smaller ones are subnormal in float16
    assert np.array_equal(found.arrays["wte"][large], rounded["model.embed_tokens.weight"][large])


def test_a_bare_gpt2_with_its_masks_is_the_same_model(tmp_path):
    config = {**foreign.settings("gpt2", 0), "tie_word_embeddings": True, "n_layer": 1}
    arrays = foreign.drawn(foreign.shapes(config))
    whole = exchange.read(foreign.write_folder(tmp_path / "a", config, arrays))
    bare = {name.removeprefix("transformer."): array for name, array in arrays.items()}
    bare |= {"h.0.attn.bias": np.ones((1, 1, 4, 4), np.float32), "lm_head.weight": bare["wte.weight"]}
    found = exchange.read(foreign.write_folder(tmp_path / "b", config, bare))
    assert all(np.array_equal(found.arrays[name], array) for name, array in whole.arrays.items())
    bare["lm_head.weight"] = bare["wte.weight"] + 1
    assert "ties the LM head" in refused(foreign.write_folder(tmp_path / "c", config, bare))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"model_type": "bert"},
            "its model_type is 'bert'. Use a model of gpt2, llama, mistral, qwen2",
        ),
        ({"hidden_act": "gelu"}, "its activation is 'gelu'. Only silu can be computed."),
        (
            {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
            "but only default, linear, llama3, yarn can be computed",
        ),
        (
            {"rope_scaling": {"type": "yarn", "factor": 2.0, "truncate": False}},
            "its truncate is False, but only True",
        ),
        ({"rope_scaling": {"type": "yarn", "factor": 2.0, "mscale": 0.7}}, "its mscale is 0.7"),
        (
            {"rope_scaling": {"type": "yarn", "factor": 2.0, "beta": 3}},
            "its rope_scaling has 'beta': 3, which byhand does",
        ),
        ({"rope_scaling": {"type": ["linear"], "factor": 2.0}}, "its rope_scaling is"),
        ({"rope_scaling": ["linear", 2.0]}, "its rope_scaling is"),
        ({"rope_scaling": {"type": "linear"}}, "it lacks factor"),
        ({"rope_parameters": {"type": "linear", "factor": 0.5}}, "rope_factor is 0.5, but must be at least 1"),
        ({"rope_parameters": {"type": "linear", "factor": "2"}}, "rope_factor is "),
        ({"rope_parameters": {"type": "linear", "factor": 1e300}}, "rope_factor is 1e+300, but can be at most 1e+06"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "its rope_scaling and rope_parameters differ"),
        ({"rope_scaling": {"type": "default"}, "rope_theta": 7.0}, "its rope_scaling and rope_parameters differ"),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 8.0, "rope_theta": 5e5}}, "it lacks low_freq_factor"),
        ({"rope_parameters": {**LLAMA3, "low_freq_factor": 4.0}}, "rope_slow is 4 and rope_fast 4, but they must be"),
        ({"rope_parameters": {**LLAMA3, "original_max_position_embeddings": 1e4}}, "rope_original_len is 10000.0"),
        ({"rope_parameters": {**YARN, "original_max_position_embeddings": 6}}, "but no pair makes 1 turns in so few"),
        ({"rope_parameters": {**YARN, "attention_factor": 0.0}}, "rope_attention is 0, but must be from"),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "its partial_rotary_factor is"),
        ({"attention_bias": "yes"}, "its attention_bias is 'yes', but must be true or false."),
        ({"hidden_size": "wide"}, 'd_model is "wide"'),
        ({"hidden_size": 10**30}, "d_model is a number of over 24 digits"),
        ({"num_attention_heads": 0}, "n_heads is 0, but must be at least 1"),
        ({"head_dim": -2}, "d_head is -2"),
        ({"rms_norm_eps": 0}, "norm_eps is 0.0, but must be above 0"),
        ({"num_hidden_layers": 2000}, "n_layers is 2000, but can be at most 1024"),
        ({"head_dim": 5}, "its heads have the odd width 5"),
        ({"rope_parameters": None, "rope_theta": None}, "its rope_theta is null"),
        ({"rms_norm_eps": None}, "its rms_norm_eps is null"),
        ({"tie_word_embeddings": None}, "its tie_word_embeddings is null"),
    ],
)
def test_a_config_that_cannot_be_computed_is_refused(change, words, tmp_path):
    folder(tmp_path, LLAMA)
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, **change}))
    assert words in refused(tmp_path).replace("'wide'", '"wide"')


@pytest.mark.parametrize("kind", foreign.KINDS)
@pytest.mark.parametrize("value", [False, None, 0, 1, "yes"])
def test_attention_that_looks_ahead_is_refused(kind, value):
    config = foreign.settings(kind, 0)
    assert settings.as_config({**config, "is_causal": True}) == settings.as_config(config)
    with pytest.raises(ByhandError, match=r"its is_causal is .*, but only True can be computed here"):
        settings.as_config({**config, "is_causal": value})


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        *((kind, key) for kind in foreign.KINDS for key in ("tie_word_embeddings", "use_cache")),
        *(("gpt2", key) for key in ("scale_attn_weights", "scale_attn_by_inverse_layer_idx", "add_cross_attention")),
        *(("qwen2", key) for key in ("use_sliding_window", "sliding_window", "max_window_layers")),
        ("gpt2", "reorder_and_upcast_attn"), ("llama", "attention_bias"), ("llama", "mlp_bias"),
        ("qwen3", "attention_bias"), ("mistral", "is_encoder_decoder"),
    ],
)  # fmt: skip
def test_a_key_of_another_type_is_refused_as_transformers_does(kind, key):
    """transformers accepts none of these values, and takes some of them for the opposite where it does."""
    number = key in ("sliding_window", "max_window_layers")
    for value in ("yes", [], 1.0, 2.5, *([True] if number else [None, 0, 1])):
        with pytest.raises(ByhandError, match=rf"{key} is|tied_embeddings is"):
            settings.as_config({**foreign.settings(kind, 0), key: value})


@pytest.mark.parametrize("kind", sorted({*foreign.KINDS} - {"gpt_neo"}))
def test_a_kind_of_attention_is_said_for_each_layer_or_not_at_all(kind):
    config = foreign.settings(kind, 0)
    count = config["n_layer" if kind == "gpt2" else "num_hidden_layers"]
    assert settings.as_config({**config, "layer_types": ["full_attention"] * count})
    for kinds in (count - 1, count + 1):
        with pytest.raises(ByhandError, match=f"its layer_types are .* for each of its {count} layers"):
            settings.as_config({**config, "layer_types": ["full_attention"] * kinds})
    for kinds in ("full_attention", {}, 3, ["other"] * count, [None] * count, [[]] * count):
        with pytest.raises(ByhandError, match=f"its layer_types are .* for each of its {count} layers"):
            settings.as_config({**config, "layer_types": kinds})


@pytest.mark.parametrize("key", ["hidden_size", "vocab_size", "num_hidden_layers", "max_position_embeddings"])
def test_a_config_without_a_size_is_refused(key, tmp_path):
    folder(tmp_path, LLAMA)
    (tmp_path / "config.json").write_text(json.dumps({k: v for k, v in LLAMA.items() if k != key}))
    assert f"it lacks {key}" in refused(tmp_path)


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({"use_sliding_window": False, "sliding_window": 5}, None),
        ({"use_sliding_window": True, "max_window_layers": 0, "max_position_embeddings": 8192}, 4096),
        ({"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}, 5),
        ({"use_sliding_window": True, "sliding_window": 5, "layer_types": ["sliding_attention"] * 2}, 5),
        ({"sliding_window": 5, "layer_types": ["full_attention"] * 2}, None),
    ],
)
def test_windows_of_qwen(given, window):
    config = {**foreign.settings("qwen2", 0), "num_hidden_layers": 2, "max_position_embeddings": 16, **given}
    assert settings.as_config(config)[1].attention_window == window


def test_llama_has_no_window_whatever_its_file_says():
    config = {**LLAMA, "sliding_window": 4, "layer_types": ["sliding_attention"] * LLAMA["num_hidden_layers"]}
    assert settings.as_config(config)[1].attention_window is None


def test_heads_without_end_are_refused_at_once():
    with pytest.raises(ByhandError, match="n_heads is 1000000000000000, but can be at most"):
        settings.as_config({**LLAMA, "num_attention_heads": 10**15, "num_key_value_heads": 7, "head_dim": 64})


@pytest.mark.parametrize("twin", GPT2.twins)
def test_two_names_of_one_size_must_agree(twin):
    config = foreign.settings("gpt2", 0)
    same = config[GPT2.twins[twin]]
    assert settings.as_config({**config, twin: same}) == settings.as_config(config)
    with pytest.raises(ByhandError, match=f"its {twin} and {GPT2.twins[twin]} differ"):
        settings.as_config({**config, twin: same + 1})


def test_two_bases_of_rotation_must_agree():
    turns = {"rope_type": "default", "rope_theta": 300.0}
    with pytest.raises(ByhandError, match="its rope_scaling and rope_parameters differ"):
        settings.as_config({**LLAMA, "rope_scaling": {**turns, "rope_theta": 9.0}, "rope_parameters": turns})
    same = settings.as_config({**LLAMA, "rope_scaling": turns, "rope_parameters": turns})
    assert same[1].rope_base == 300.0


def test_a_file_that_is_replaced_while_the_folder_is_read_is_refused(tmp_path):
    folder(tmp_path, LLAMA)
    weights = Weights(tmp_path)
    (tmp_path / "new").write_bytes((tmp_path / "model.safetensors").read_bytes())
    (tmp_path / "new").replace(tmp_path / "model.safetensors")
    with pytest.raises(ByhandError, match="it changed while it was read"):
        weights.read("model.norm.weight")


@pytest.mark.parametrize(
    "asked",
    [
        {"tokenizer_class": "Qwen2Tokenizer"},
        {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True},
        {"added_tokens_decoder": {"300": {"content": "<|im_start|>"}}},
        [],
    ],
)
def test_settings_that_ask_for_another_tokenizer_than_gpt2s_are_refused(asked, tmp_path):
    symbols = {sign: token for token, sign in enumerate(visible_bytes())}
    (tmp_path / "vocab.json").write_text(json.dumps({**symbols, "<|endoftext|>": 256}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    plain = {"tokenizer_class": "GPT2Tokenizer", "added_tokens_decoder": {"256": {"content": "<|endoftext|>"}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(plain))
    assert of_folder(tmp_path).special == {"<|endoftext|>": 256}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(asked))
    with pytest.raises(ByhandError, match="asks for another tokenizer than GPT-2's"):
        of_folder(tmp_path)


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("kind", ["type", "rope_type"])
def test_plain_rotation_may_be_said_in_each_way(key, kind):
    config = {name: value for name, value in LLAMA.items() if name != "rope_parameters"}
    given = {**config, "rope_theta": 300.0, key: {kind: "default"}}
    assert settings.as_config(given)[1].rope_base == 300.0
    assert settings.as_config({**given, key: {kind: "default", "rope_theta": 200}})[1].rope_base == 200.0


def test_layers_with_different_windows_are_refused():
    mixed = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
    with pytest.raises(ByhandError, match="attention windows of several sizes"):
        settings.as_config({**foreign.settings("qwen2", 0), "num_hidden_layers": 2, **mixed})


def test_tensors_that_are_missing_foreign_or_of_another_shape_are_refused(tmp_path):
    arrays = foreign.drawn(foreign.shapes(LLAMA))
    name = "model.layers.0.mlp.up_proj.weight"
    rest = {key: array for key, array in arrays.items() if key != name}
    assert "lacks the tensor layers.0.mlp.up_proj.weight" in refused(foreign.write_folder(tmp_path, LLAMA, rest))
    foreign.write_folder(tmp_path, LLAMA, {**arrays, "model.layers.0.mlp.router.weight": arrays[name]})
    assert "has the tensor 'layers.0.mlp.router.weight', which a model of its config.json lacks" in refused(tmp_path)
    foreign.write_folder(tmp_path, LLAMA, {**arrays, name: arrays[name].T})
    assert "layers.0.mlp.up_proj.weight has the shape" in refused(tmp_path)
    foreign.write_folder(tmp_path, LLAMA, {**arrays, name: arrays[name] * np.nan})
    assert f"{name} holds NaN or infinity" in refused(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(foreign.safetensors(arrays, {name: "I64"}))
    assert "is I64. Use a model in F32, F16, BF16, F64." in refused(tmp_path)
    large = {key: array.astype(np.float64) * (1e300 if key == name else 1) for key, array in arrays.items()}
    (tmp_path / "model.safetensors").write_bytes(foreign.safetensors(large, dict.fromkeys(large, "F64")))
    assert f"{name} holds NaN or infinity" in refused(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert "cannot read" in refused(tmp_path)
    (tmp_path / "pytorch_model.bin").touch()
    assert "has its weights in pytorch_model.bin, a pickle, which byhand does not read. Convert it with" in refused(
        tmp_path
    )


def test_sizes_are_checked_before_anything_is_allocated(tmp_path):
    folder(tmp_path, LLAMA)
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, "vocab_size": 1 << 20, "hidden_size": 1 << 17}))
    assert "takes" in (words := refused(tmp_path)) or "has the shape" in words
    content = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    for length in (0, 1 << 40, len(content)):
        (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", length) + content[8:])
        assert "the length of its header is wrong" in refused(tmp_path)
    for cut in (content[:-1], content + b"\0"):
        (tmp_path / "model.safetensors").write_bytes(cut)
        assert "its arrays overlap, leave gaps, or do not end with the file" in refused(
            tmp_path
        ) or "offsets" in refused(tmp_path)


@pytest.mark.parametrize(("text", "end"), [({"training_documents": 3}, 0), ({}, None)])
def test_a_learnt_end_of_documents_ends_texts_of_transformers_too(tmp_path, text, end):
    """Of bytes it is the byte 0, which no convention names."""
    config = ModelConfig(seq_len=8, d_model=8, n_layers=1, n_heads=1, norm_affine=True, lm_head_bias=False)
    arrays = {name: p.data for name, p in TinyGPT(config).parameters().items()}
    run = Checkpoint(TrainConfig(model=config), arrays, {}, {"step": 1, "text": text})
    exchange.write(run, "hf", tmp_path / "out")
    for name in ("config.json", "generation_config.json"):
        assert json.loads((tmp_path / "out" / name).read_bytes())["eos_token_id"] == end


def read_settings(kind, change):
    """Return the config that a config.json of this kind says; None in `change` leaves a key out."""
    found = {key: value for key, value in (foreign.settings(kind, 1) | change).items() if value is not None}
    return settings.as_config(found)[1]


OLD_GEMMA3 = {
    "rope_parameters": None, "rope_theta": 1e5, "rope_local_base_freq": 30.0, "layer_types": None,
    "rope_scaling": {"rope_type": "linear", "factor": 8.0},
}  # fmt: skip
SLIDING = ["sliding_attention", *["full_attention"] * 3]
FOUR = {"num_hidden_layers": 4, "layer_types": None, "no_rope_layers": None}


@pytest.mark.parametrize(
    ("kind", "change", "letters"),
    [
        ("gpt_neo", {"num_layers": 4, "attention_types": [[["global", "local"], 2]]}, "gwgw"),
        ("gpt_neo", {"num_layers": 24, "attention_types": None}, "gw" * 12),
        ("gpt_neo", {"num_layers": 3, "attention_types": [[["local"], 1], [["global"], 2]]}, "wgg"),
        ("gemma3_text", {**FOUR, "num_hidden_layers": 8}, "wwwwwgww"),
        ("gemma3_text", {**FOUR, "sliding_window_pattern": 2}, "wgwg"),
        ("gemma3_text", {**OLD_GEMMA3, "num_hidden_layers": 8}, "wwwwwgww"),
        ("gemma3_text", {**FOUR, "layer_types": ["full_attention"] * 4}, "gggg"),
        ("smollm3", FOUR, "gggn"),
        ("smollm3", {**FOUR, "no_rope_layer_interval": 2}, "gngn"),
        ("smollm3", {**FOUR, "no_rope_layers": [0, 1, 1, 0, 1]}, "nggn"),
        ("smollm3", {**FOUR, "use_sliding_window": True}, "gggn"),
        (
            "smollm3",
            {
                **FOUR, "use_sliding_window": True, "sliding_window": 3,
                "layer_types": ["sliding_attention", *["full_attention"] * 3],
            },
            "wggn",
        ),
    ],
)  # fmt: skip
def test_kinds_of_layers_are_read_as_every_version_of_transformers_says_them(kind, change, letters):
    config = read_settings(kind, change)
    assert config.layer_letters == letters
    assert (config.attention_window is None) == ("w" not in letters)


def test_two_rotary_bases_are_read_from_older_files_too():
    config = read_settings("gemma3_text", {**OLD_GEMMA3, "num_hidden_layers": 8})
    assert (config.rope_base, config.rope_window_base, config.rope_scaling) == (1e5, 30.0, "linear")
    local, whole = config.layer_kinds[0], config.layer_kinds[5]
    assert (local.base, local.scaling, whole.base, whole.scaling.factor) == (30.0, None, 1e5, 8.0)


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("gpt_neo", {"num_layers": 4, "attention_types": [[["global"], 3]]}, "must name each of its 4 layers"),
        ("gpt_neo", {"num_layers": 1, "attention_types": [[["round"], 1]]}, "must name each of its 1 layers"),
        ("gpt_neo", {"num_layers": 1, "attention_types": [[["global"], 10**9]]}, "must name each of its 1 layers"),
        ("gpt_neo", {"num_layers": 1, "attention_types": [[["local"], 1]], "window_size": "wide"}, "its window_size"),
        (
            "gpt_neo",
            {"num_layers": 1, "attention_types": [[["local"], 1]], "attention_layers": ["global"]},
            "its attention_layers are ['global']",
        ),
        ("gemma3_text", {"rope_parameters": {"rope_theta": 1e5}}, "its rope_parameters have 'rope_theta'"),
        ("gemma3_text", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "Name rope_type there too"),
        ("gemma3_text", {**FOUR, "layer_types": ["full_attention"]}, "its layer_types are"),
        ("gemma3_text", {**FOUR, "sliding_window_pattern": 0}, "its sliding_window_pattern is 0"),
        ("gemma3_text", {**FOUR, "attn_logit_softcapping": 50.0}, "its attn_logit_softcapping is 50.0"),
        ("llama", {"per_layer_config": {"0": {"head_dim": 2}}}, "its per_layer_config is"),
        ("gpt_neox", {"head_dim": 2}, "its head_dim is 2, but its heads have the width"),
        (
            "smollm3",
            {**FOUR, "layer_types": SLIDING, "sliding_window": 3},
            "'sliding_attention', but its window is not",
        ),
        ("smollm3", {**FOUR, "layer_types": SLIDING, "use_sliding_window": True}, "but its window is not used"),
        ("qwen2", {**FOUR, "layer_types": SLIDING, "sliding_window": 3}, "but its window is not used. Set use_slid"),
        (
            "gemma3_text",
            {"rope_parameters": {"sliding_attention": {"rope_type": "linear", "factor": 2.0}}},
            "layers with a window cannot be scaled here",
        ),
        ("smollm3", {**FOUR, "no_rope_layers": [1, 2, 1, 1]}, "its no_rope_layers are"),
        ("smollm3", {**FOUR, "no_rope_layer_interval": 1.5}, "its no_rope_layer_interval is 1.5"),
        ("smollm3", {**FOUR, "use_sliding_window": True, "sliding_window": 3}, "window and without rotary positions"),
    ],
)
def test_kinds_of_layers_that_cannot_be_computed_are_refused(kind, change, words):
    with pytest.raises(ByhandError) as error:
        read_settings(kind, change)
    assert words in str(error.value)


def test_what_a_family_does_not_read_says_nothing():
    """Phi-3's window is that of all layers, whatever their types; GPT-NeoX's base has another name."""
    plain = foreign.settings("gpt_neox", 3)
    assert settings.as_config({**plain, "rope_theta": 5.0, "partial_rotary_factor": 1.0}) == settings.as_config(plain)
    config = read_settings("phi3", {**FOUR, "layer_types": ["full_attention"] * 4, "sliding_window": 3})
    assert config.attention_window == 3


@pytest.mark.parametrize(("given", "cap"), [({}, 0.0), ({"final_logit_softcapping": 30.0}, 30.0)])
def test_the_cap_of_gemmas_logits_goes_in_and_out(given, cap, tmp_path):
    """transformers would divide by a cap of 0."""
    found = exchange.read(folder(tmp_path / "in", {**foreign.settings("gemma3_text", 1), **given}))
    assert found.config.logit_softcap == cap
    run = Checkpoint(TrainConfig(model=found.config), found.arrays, {}, {"step": 0, "text": {}})
    exchange.write(run, "hf", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_bytes())["final_logit_softcapping"] == (cap or None)
    assert exchange.read(tmp_path / "out").config == found.config
