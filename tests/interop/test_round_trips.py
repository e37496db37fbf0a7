"""A model that leaves and comes back is the same to the bit; one with fewer parameters computes the same."""

import json
import tracemalloc
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from byhand.config import TrainConfig
from byhand.errors import ConfigError, DataError
from byhand.formats.names import Exported
from byhand.formats.registry import FORMATS
from byhand.interop import exchange
from byhand.interop.families import completed, family_of
from byhand.interop.gguf import model as gguf
from byhand.interop.hugging_face import folder as hugging_face
from byhand.interop.hugging_face.families import FAMILIES
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.byte import BYTES
from interop import foreign_cases as foreign
from interop.run_cases import GPT2, LLAMA, PARTIAL, WHOLE, logits, parameters

TOKENS = [[72, 101, 108, 108, 111], [0, 255, 32, 10, 7]]
KNOWN = {"hf": FAMILIES, "gguf": gguf.KNOWN}
GOALS = tuple(KNOWN)


def there_and_back(config, arrays, goal, place, dtype="float32"):
    run = Checkpoint(TrainConfig(model=config), arrays, {}, {"step": 0})
    exchange.write(run, goal, place, dtype)
    return exchange.read(place)


def same(name, found, due, less=False):
    """Compare an array with another, bit for bit; for one stored minus 1, its sum with 1 up to rounding."""
    if less:
        np.testing.assert_allclose(found, due, rtol=0, atol=2**-23, err_msg=name)
    else:
        assert np.array_equal(found, due), name


EXPORTED = [
    (name, goal)
    for goal in GOALS
    for name, config in WHOLE.items()
    if any(not family.problems(config) for family in KNOWN[goal].values())
]


@pytest.mark.parametrize(("name", "goal"), EXPORTED)
def test_a_run_comes_back_bit_for_bit(name, goal, tmp_path):
    config, arrays = WHOLE[name], parameters(WHOLE[name])
    found = there_and_back(config, arrays, goal, tmp_path / "out")
    assert found.config == config
    assert found.tokenizer() is BYTES
    assert found.arrays.keys() == arrays.keys()
    for key, array in arrays.items():
        same(key, found.arrays[key], array, less=goal == "hf" and "gain" in key and name.startswith("gemma"))


@pytest.mark.parametrize("dtype", get_args(Exported))
@pytest.mark.parametrize("goal", GOALS)
def test_a_run_comes_back_rounded_to_its_format(goal, dtype, tmp_path):
    """Of a GGUF the matrices alone: gains, biases and the table of positions, which are added, stay float32."""
    arrays, kind = parameters(GPT2), FORMATS[dtype]
    if kind.block > 1 and goal == "hf":
        return
    found = there_and_back(GPT2, arrays, goal, tmp_path / "out", dtype)
    exact = set() if goal == "hf" else {name for name, array in arrays.items() if array.ndim == 1 or name == "wpe"}
    for name, array in arrays.items():
        turned = goal == "gguf" and name not in ("wte", "wpe")  # blocks lie along the rows of theirs
        due = kind.rounded(array.T).T if turned else kind.rounded(array)
        assert np.array_equal(found.arrays[name], array if name in exact else due), name
    if goal == "hf":
        settings = json.loads((tmp_path / "out" / "config.json").read_text())
        assert settings["dtype"] == settings["torch_dtype"] == dtype
        stored = {entry.kind.name for _, entry in hugging_face.Weights(tmp_path / "out").stored.values()}
        assert stored == {dtype}


def test_a_gain_that_no_half_holds_is_refused_in_a_folder_and_kept_in_a_gguf(tmp_path):
    arrays = parameters(GPT2)
    arrays["ln_f.gain"][3] = -65505
    with pytest.raises(ConfigError, match=r"ln_f.gain holds numbers larger than F16 can \(65,504\). Use --dtype fl"):
        there_and_back(GPT2, arrays, "hf", tmp_path / "out", "float16")
    assert not (tmp_path / "out").exists()
    assert there_and_back(GPT2, arrays, "gguf", tmp_path / "out", "float16").arrays["ln_f.gain"][3] == -65505


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", PARTIAL)
def test_added_zeros_and_ones_change_no_logit(name, goal, tmp_path):
    config, arrays = PARTIAL[name], parameters(PARTIAL[name])
    found = there_and_back(config, arrays, goal, tmp_path / "out")
    assert found.config != config
    for key, array in arrays.items():
        assert np.array_equal(found.arrays[key], array), key
    assert np.array_equal(logits(found.config, found.arrays, TOKENS), logits(config, arrays, TOKENS))


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("qk_norm", [False, True])
def test_the_other_pairing_comes_back_as_halves_and_computes_the_same(goal, qk_norm, tmp_path):
    config = replace(LLAMA, rope_pairing="neighbours", qk_norm=qk_norm, attention_bias="none" if qk_norm else "qkv")
    arrays = parameters(config)
    found = there_and_back(config, arrays, goal, tmp_path / "out")
    assert found.config == replace(config, rope_pairing="halves")
    due = logits(config, arrays, TOKENS)
    np.testing.assert_allclose(logits(found.config, found.arrays, TOKENS), due, atol=1e-12)
    unturned = logits(replace(config, rope_pairing="halves"), arrays, TOKENS)
    assert abs(unturned - due).max() > 0.01  # the same numbers with the wrong pairing are another model


@pytest.mark.parametrize("kind", foreign.KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_foreign_folder_comes_back_bit_for_bit(kind, seed, tmp_path):
    config = foreign.settings(kind, seed) | {"vocab_size": 256}
    arrays = foreign.drawn(foreign.shapes(config), seed)
    if kind == "phi3":  # without what Llama and Mistral lack it would become one
        config["rope_parameters"]["partial_rotary_factor"] = 0.5
    if kind == "llama" and config["hidden_size"] % config["num_attention_heads"]:
        config["hidden_size"] *= config["num_attention_heads"]
    found = exchange.read(foreign.write_folder(tmp_path / "in", config, arrays))
    run = Checkpoint(TrainConfig(model=found.config), found.arrays, {}, {"step": 0})
    exchange.write(run, "hf", tmp_path / "out")
    weights = hugging_face.Weights(tmp_path / "out")
    again = {name: weights.read(name) for name in weights.stored}
    zeros = {name for name in again.keys() - arrays.keys() if not again[name].any()}
    assert again.keys() - zeros == arrays.keys()
    for name, array in arrays.items():
        same(name, again[name], array, less="norm" in name and kind.startswith("gemma"))


def test_gguf_keeps_the_family_that_has_the_fewest_parameters_on_top():
    cases = {name: config for name, config in {**WHOLE, **PARTIAL}.items() if name.split()[0] in gguf.KNOWN}
    names = {name: family_of(config, gguf.KNOWN, "GGUF").name for name, config in cases.items()}
    assert names == {name: name.split()[0] for name in names}


def test_completed_arrays_are_those_of_the_completed_config():
    config = PARTIAL["llama with a bias in the MLP and in q, k, v"]
    full, whole = completed(parameters(config), config, family_of(config, gguf.KNOWN, "GGUF"))
    assert whole.attention_bias == "all"
    assert not full["blocks.1.attn.b_proj"].any()
    assert (completed(parameters(PARTIAL["llama without gain"]), PARTIAL["llama without gain"],
                      gguf.KNOWN["llama"])[0]["ln_f.gain"] == 1).all()  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"lm_head_bias": True},
            "lm_head_bias is true, which gpt2 models lack. Train a model with --no-lm-head-bias.",
        ),
        ({"norm_position": "post"}, "norm_position is post, which gpt2 models lack"),
        ({"logit_softcap": 15.0}, "Train a model with --logit-softcap 0.0"),
        ({"causal": False}, "causal is false, which gpt2 models lack. Train a model with --causal."),
        (
            {"attention_window": 8},
            "gpt2 models have no window of attention. Train a model without --attention-window.",
        ),
        (
            {"n_kv_heads": 2},
            "gpt2 models have as many heads of keys as of queries. Train a model without --n-kv-heads.",
        ),
        ({"d_head": 5}, "the heads of gpt2 models divide the width. Train a model without --d-head."),
        ({"positions": "none"}, "positions is none"),
        (
            {"lm_head_bias": True, "logit_softcap": 15.0, "n_kv_heads": 2},
            "logit_softcap is 15.0, which gpt2 models lack; gpt2 models have as many heads of keys as of queries. "
            "Train a model with --no-lm-head-bias, with --logit-softcap 0.0, without --n-kv-heads.",
        ),
    ],
)
@pytest.mark.parametrize("goal", GOALS)
def test_what_has_no_form_is_refused_with_what_to_change(change, words, goal, tmp_path):
    config = replace(GPT2, **change)
    with pytest.raises(ConfigError) as error:
        there_and_back(config, parameters(config), goal, tmp_path / "out")
    assert words in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("goal", "change", "words"),
    [
        ("gguf", {"activation": "relu"}, "activation is relu, which gpt2 models lack. Train a model with --"),
        ("gguf", {**vars(LLAMA), "attention_window": 8}, "no window of attention"),
        ("gguf", {**vars(LLAMA), "rope_fraction": 0.5}, "Train a model with --rope-fraction 1."),
        ("hf", {**vars(LLAMA), "positions": "none"}, "positions is none"),
        ("hf", {**vars(LLAMA), "d_head": 8, "d_model": 30}, "a llama whose 4 heads do not divide its width 30"),
    ],
)  # fmt: skip
def test_what_one_format_lacks_is_refused_there(goal, change, words, tmp_path):
    config = replace(GPT2, **change)
    with pytest.raises(ConfigError) as error:
        there_and_back(config, parameters(config), goal, tmp_path / "out")
    assert words in str(error.value)


def test_a_window_goes_to_transformers_as_mistral(tmp_path):
    config = replace(LLAMA, attention_window=8)
    found = there_and_back(config, parameters(config), "hf", tmp_path / "out")
    assert found.source == "Hugging Face mistral"
    assert found.config == config


def test_a_folder_with_files_is_left_as_it_is(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match=r"holds 'mine.txt'. Choose a new or empty folder with --out."):
        there_and_back(GPT2, parameters(GPT2), "hf", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("goal", GOALS)
def test_memory_holds_a_model_once_and_a_tensor_at_a_time(goal, tmp_path):
    """Bytes that NumPy and Python allocate, whatever the machine does meanwhile."""
    config = replace(GPT2, d_model=128, n_layers=8, seq_len=16)
    arrays = parameters(config)
    whole, largest = (f(array.nbytes for array in arrays.values()) for f in (sum, max))
    run = Checkpoint(TrainConfig(model=config), arrays, {}, {}, {"step": 0})
    tracemalloc.start()
    try:
        exchange.write(run, goal, tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < 5 * largest < whole / 4
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        found = exchange.read(tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] - before < whole + 5 * largest + (2 << 20)  # and pieces of files
    finally:
        tracemalloc.stop()
    assert found.arrays.keys() == arrays.keys()
