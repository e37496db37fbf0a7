"""GGUF: bytes by the format's description, quantised blocks by arithmetic, llama.cpp's stored probabilities."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byhand.config import TrainConfig
from byhand.errors import ByhandError, ConfigError
from byhand.files import writing
from byhand.files.weights import OpenFile
from byhand.files.writing import write_new
from byhand.interop import exchange
from byhand.interop.gguf.file import GGUF
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.conventions import Conventions
from byhand.tokenizers.symbols import visible_bytes
from interop.llama_cpp_float import as_llama_cpp_computes
from interop.run_cases import GPT2, LLAMA, WHOLE, parameters

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "exchange" / "llama_cpp.json"
PROMPT = b"hello wo"


def text(s: str) -> bytes:
    return struct.pack("<Q", len(s.encode())) + s.encode()


def by_description(keys: dict, tensors: dict, alignment: int = 32, version: int = 3) -> bytes:
    """Return a file of float32 tensors, written from the description of the format."""
    content = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for key, value in keys.items():
        content += text(key)
        if isinstance(value, bool):
            content += struct.pack("<IB", 7, value)
        elif isinstance(value, int):
            content += struct.pack("<II", 4, value)
        elif isinstance(value, float):
            content += struct.pack("<If", 6, value)
        elif isinstance(value, str):
            content += struct.pack("<I", 8) + text(value)
        elif value and isinstance(value[0], str):
            content += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        else:
            content += struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
    data = b""
    for name, array in tensors.items():
        data += bytes(-len(data) % alignment)
        dims = array.shape[::-1]
        content += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, 0, len(data))
        data += array.astype("<f4").tobytes()
    return content + bytes(-len(content) % alignment) + data + bytes(-len(data) % alignment)


def export(config, arrays, place, dtype="float32", tokenizer=BYTES) -> Path:
    run = Checkpoint(TrainConfig(model=config), arrays, {}, {"step": 0}, tokenizer=tokenizer)
    return exchange.write(run, "gguf", place, dtype)[0]


def content_of(path) -> tuple[dict, dict]:
    """Return a file's keys and tensors."""
    with OpenFile(path) as opened:
        file = GGUF(opened)
        return file.keys, {name: file.read(name) for name in file.tensors}


def with_keys(path, changed) -> None:
    """Write a file anew, with other values of some keys."""
    keys, tensors = content_of(path)
    path.write_bytes(by_description({**keys, **changed}, tensors))


def refused(path) -> str:
    with pytest.raises(ByhandError) as error:
        exchange.read(path).tokenizer()
    assert str(error.value).isprintable()
    return str(error.value)


@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen3"])
def test_the_file_is_the_one_of_the_description(name, tmp_path):
    path = export(WHOLE[name], parameters(WHOLE[name]), tmp_path / "out")
    keys, tensors = content_of(path)
    assert path.read_bytes() == by_description(keys, tensors)
    assert keys["general.architecture"] == name
    assert keys[f"{name}.context_length"] == 32
    assert len(keys["tokenizer.ggml.tokens"]) == 256
    assert tensors["blk.1.ffn_down.weight"].shape == (32, WHOLE[name].ff_width)  # [out, in]
    assert ("output.weight" in tensors) != WHOLE[name].tied_embeddings


def test_llama_permutes_q_and_k_as_its_converter_does(tmp_path):
    arrays = parameters(LLAMA)
    _, tensors = content_of(export(LLAMA, arrays, tmp_path / "out"))
    q, k, v = (tensors[f"blk.0.attn_{name}.weight"] for name in "qkv")
    ours = arrays["blocks.0.attn.w_qkv"].T  # rows: queries, keys, values
    for rows, heads, found in ((ours[:32], 4, q), (ours[32:48], 2, k)):
        due = rows.reshape(heads, 2, 4, 32).swapaxes(1, 2).reshape(rows.shape)
        assert np.array_equal(found, due)
        assert not np.array_equal(found, rows)
    assert np.array_equal(v, ours[48:])


def test_a_file_of_another_writer_is_read(tmp_path):
    """Version 2, another alignment, float16 epsilon, keys that say nothing here, tensors in another order."""
    path = export(WHOLE["qwen2"], parameters(WHOLE["qwen2"]), tmp_path / "out")
    keys, tensors = content_of(path)
    tensors = dict(reversed(tensors.items()))
    keys |= {"general.alignment": 64, "general.license": "none", "tokenizer.ggml.scores": [1, 2]}
    (tmp_path / "other.gguf").write_bytes(by_description(keys, tensors, alignment=64, version=2))
    found = exchange.read(tmp_path / "other.gguf")
    assert found.config == WHOLE["qwen2"]
    assert all(np.array_equal(found.arrays[n], a) for n, a in parameters(WHOLE["qwen2"]).items())


@pytest.mark.parametrize(("quantize", "bits", "most"), [("q8_0", 8.5, 0.008), ("q4_0", 4.5, 0.14)])
@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen3"])
def test_quantising_loses_at_most_half_a_step(name, quantize, bits, most, tmp_path):
    """Half a step is 1/254 of a block's largest number, or with 4 bits 1/8, and the float16 scale adds a little."""
    arrays = parameters(WHOLE[name])
    path = export(WHOLE[name], arrays, tmp_path / "out", quantize)
    found = exchange.read(path).arrays
    for key, array in arrays.items():
        packed = array.ndim == 2 and key != "wpe"
        lost = np.abs(found[key] - array).max()
        assert (lost > 0) == packed, key
        assert lost <= most * np.abs(array).max(), key
    with OpenFile(path) as opened:
        file = GGUF(opened)
    sizes = {
        8 * t.size / np.prod(t.shape) for n, t in file.tensors.items() if len(t.shape) == 2 and "position" not in n
    }
    assert sizes == {bits}


def test_rows_that_are_no_multiple_of_32_stay_float32(tmp_path):
    config = replace(GPT2, d_model=40, d_ff=64)
    found = exchange.read(export(config, arrays := parameters(config), tmp_path / "out", "q8_0")).arrays
    assert not np.array_equal(found["blocks.0.mlp.w_out"], arrays["blocks.0.mlp.w_out"])  # rows of 64
    assert np.array_equal(found["blocks.0.mlp.w_fc"], arrays["blocks.0.mlp.w_fc"])  # rows of 40
    with pytest.raises(ConfigError, match="q4_0 packs rows of 32 numbers, and no matrix of this model has such"):
        export(replace(config, d_ff=50), parameters(replace(config, d_ff=50)), tmp_path / "none", "q4_0")


def test_ids_beyond_the_tokenizer_are_named_and_come_back(tmp_path):
    symbols = [*visible_bytes(), "he", "ll", "<|endoftext|>"]
    table = {s: i for i, s in enumerate(symbols[:-1])}
    words = BytePairTokenizer(table, [("h", "e"), ("l", "l")], special={symbols[-1]: 258})
    config = replace(GPT2, vocab_size=264)
    path = export(config, parameters(config), tmp_path / "out", tokenizer=words)
    keys, _ = content_of(path)
    assert keys["tokenizer.ggml.tokens"][258:] == ["<|endoftext|>", *(f"[PAD{i}]" for i in range(259, 264))]
    assert list(keys["tokenizer.ggml.token_type"][256:]) == [1, 1, 3, 5, 5, 5, 5, 5]
    assert keys["tokenizer.ggml.eos_token_id"] == 258
    found = exchange.read(path).tokenizer()
    assert found.content == words.using(Conventions(eos=258, ends=(258,))).content


@pytest.mark.parametrize("case", json.loads(FIXTURE.read_text(encoding="utf-8")), ids=lambda case: case["name"])
def test_probabilities_are_those_that_llama_cpp_stored(case, tmp_path):
    config, dtype = WHOLE[case["name"]], case["dtype"]
    path = export(config, parameters(config, case["seed"]), tmp_path / "out", dtype)
    found = exchange.read(path)
    ours = as_llama_cpp_computes(found.config, found.arrays, list(PROMPT), dtype)
    np.testing.assert_allclose(ours, case["logprobs"], atol=2e-5)  # stored with five decimals


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("llama.attention.key_length", 5, "its llama.attention.value_length is 8"),
        (
            "general.architecture",
            "bert",
            "its general.architecture is 'bert'. Use a model of gpt2, llama, gptneox, stablelm, olmo2, gemma, "
            "gemma3, smollm3, qwen2, qwen3.",
        ),
        ("llama.context_length", 0, "seq_len is 0, but must be at least 1"),
        ("llama.block_count", 3, "lacks the tensor blk.2."),
        (
            "llama.block_count",
            1,
            "has the tensor 'blk.1.attn_k.weight', which a model of its metadata lacks. Use another model.",
        ),
        ("llama.attention.head_count", "four", "n_heads is"),
        ("llama.attention.value_length", 4, "its llama.attention.value_length is 4, but its heads have the width 8."),
        ("llama.rope.dimension_count", 4, "its llama.rope.dimension_count is 4"),
        (
            "llama.rope.scaling.type",
            "longrope",
            "its rotation is {'rope.scaling.type': 'longrope'}, but only linear, yarn can be computed here.",
        ),
        ("llama.expert_count", 8, "its llama.expert_count is 8"),
        ("llama.attention.causal", False, "its llama.attention.causal is False, but only True can be computed here."),
        ("llama.rope.scaling.attn_factor", 2.0, "its rotation is {'rope.scaling.attn_factor': 2.0}"),
        ("llama.expert_count", 1, "its llama.expert_count is 1"),
        ("llama.attention.sliding_window", 1, "its llama.attention.sliding_window is 1"),
        ("llama.attention.head_count", [4, 2], "n_heads is"),
        ("llama.attention.layer_norm_rms_epsilon", 0.0, "norm_eps is 0.0, but must be above 0"),
        (
            "llama.feed_forward_length",
            60,
            "blk.0.ffn_gate.weight has the shape (64, 32), not the (60, 32) of its metadata.",
        ),
        (
            "llama.attention.head_count",
            [4, 4, 4],
            "its llama.attention.head_count has 3 numbers, but it has 2 blocks.",
        ),
        (
            "llama.attention.head_count_kv",
            [2],
            "its llama.attention.head_count_kv has 1 numbers, but it has 2 blocks.",
        ),
        ("llama.block_count", [2, 2], "n_layers is"),
        ("llama.expert_count", False, "its llama.expert_count is False"),
        ("llama.vocab_size", 300, "its llama.vocab_size is 300, but its token_embd.weight has 256 rows."),
        ("tokenizer.ggml.model", "bert", "only SentencePiece's"),
        (
            "tokenizer.ggml.add_bos_token",
            1,
            "its tokenizer: tokenizer.ggml.add_bos_token is '1', but must be true or",
        ),
        ("tokenizer.ggml.tokens", ["a"], "its tokens are not those of a model of 256"),
        ("general.alignment", 48, "its alignment is 48"),
        ("general.type", "adapter", "its general.type is 'adapter'"),
        ("llama.logit_scale", 2.0, "its 'llama.logit_scale' is 2.0. byhand does not know this key"),
        ("llama.use_parallel_residual", True, ""),
    ],
)
def test_keys_that_cannot_be_computed_are_refused(key, value, words, tmp_path):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    with_keys(path, {key: value})
    if words:
        assert words in refused(path)
    else:
        assert exchange.read(path).config == LLAMA


@pytest.mark.parametrize(
    ("at", "number", "words"),
    [
        (4, struct.pack("<I", 4), "it does not begin as a GGUF of version 2 or 3"),
        (8, struct.pack("<Q", 1 << 60), "tensors and"),
        (16, struct.pack("<Q", 1 << 60), "keys"),
        (24, struct.pack("<Q", 1 << 62), "its metadata have more than"),
        (24, struct.pack("<Q", 1 << 25), "within its metadata"),
    ],
)
def test_sizes_are_checked_before_anything_is_allocated(at, number, words, tmp_path):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    content = path.read_bytes()
    path.write_bytes(content[:at] + number + content[at + len(number) :])
    assert words in refused(path)


def test_a_model_beyond_memory_is_refused_before_its_arrays_are_made(tmp_path, monkeypatch):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    monkeypatch.setattr("byhand.interop.tensors.physical", lambda: 1 << 10)
    monkeypatch.setattr(GGUF, "read", lambda *_: pytest.fail("a tensor was read"))
    assert "reading this model takes" in refused(path)


def test_a_cut_or_lengthened_file_is_refused(tmp_path):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    content = path.read_bytes()
    for changed in (content[:-40], content + bytes(32), content[:2000], content[:30]):
        path.write_bytes(changed)
        refused(path)


def test_keys_of_other_architectures_and_lists_of_one_value(tmp_path):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    whole = exchange.read(path).config
    heads = {"llama.attention.head_count": [LLAMA.n_heads] * LLAMA.n_layers}
    others = {"rope.freq_base": 3.0, "attention.layer_norm_rms_epsilon": 1.0, "qwen2.block_count": 7}
    with_keys(path, {**others, **heads})
    assert exchange.read(path).config == whole


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    content, read = path.read_bytes(), GGUF.read

    def written_over(file, name):
        path.write_bytes(content)
        os.utime(path, ns=(1, 1))
        return read(file, name)

    monkeypatch.setattr(GGUF, "read", written_over)
    assert "it changed while it was read" in refused(path)


def test_heads_of_an_odd_width_are_refused(tmp_path):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    widths = ("attention.key_length", "attention.value_length", "rope.dimension_count")
    with_keys(path, {**{f"llama.{key}": 5 for key in widths}})
    assert "its heads have the odd width 5" in refused(path)


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_a_tokenizer_that_cannot_be_read_can_be_replaced(kind, tmp_path):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    with_keys(path, {"tokenizer.ggml.model": kind})
    found = exchange.read(path)
    assert exchange.with_tokenizer(found, BYTES, path) is BYTES
    with pytest.raises(ByhandError, match="Name another one with --tokenizer"):
        exchange.with_tokenizer(found, None, path)


@pytest.mark.parametrize(("dtype", "most"), [("q8_0", 8.3e6), ("q4_0", 5.2e5), ("float16", 65504)])
def test_numbers_that_a_format_cannot_hold_are_refused_before_anything_is_written(dtype, most, tmp_path):
    arrays = parameters(LLAMA)
    arrays["blocks.0.mlp.w_out"] *= 0
    arrays["blocks.0.mlp.w_out"][0, 0] = most
    export(LLAMA, arrays, tmp_path / "most", dtype)
    assert exchange.read(tmp_path / "most").arrays["blocks.0.mlp.w_out"][0, 0] == pytest.approx(most, rel=0.01)
    arrays["blocks.0.mlp.w_out"][0, 0] = -1.01 * most
    with pytest.raises(ConfigError, match=r"blocks.0.mlp.w_out holds numbers larger .* Use --dtype float32"):
        export(LLAMA, arrays, tmp_path / "more", dtype)
    assert not (tmp_path / "more").exists()
    arrays["blocks.0.mlp.w_out"][:] = 1e-40  # whose inverse is infinite
    export(LLAMA, arrays, tmp_path / "tiny", dtype)
    assert not exchange.read(tmp_path / "tiny").arrays["blocks.0.mlp.w_out"].any()


def test_one_of_several_files_has_to_be_named(tmp_path):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    (path.parent / "copy.gguf").write_bytes(path.read_bytes())
    assert "holds 2 models. Name one" in refused(path.parent)
    assert exchange.read(path).arrays


def in_parts(path, place, change=lambda i, keys: keys) -> list[Path]:
    """Write a file in three parts, the first without tensors."""
    whole, tensors = content_of(path)
    place.mkdir()
    paths, cuts = [place / f"m-{i + 1:05d}-of-00003.gguf" for i in range(3)], (0, 0, 5, len(tensors))
    for i, part in enumerate(paths):
        said = {"split.no": i, "split.count": 3, "split.tensors.count": len(tensors)}
        keys = change(i, said if i else {**whole, **said})
        part.write_bytes(by_description(keys, dict([*tensors.items()][cuts[i] : cuts[i + 1]])))
    return paths


def test_a_model_in_parts_is_read_by_any_part_and_by_its_folder(tmp_path):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    due = exchange.read(path)
    paths = in_parts(path, tmp_path / "parts")
    (paths[0].parent / "config.json").write_text("{}")  # as repositories of GGUFs have it
    for place in (*paths, paths[0].parent):
        found = exchange.read(place)
        assert found.config == due.config
        assert all(np.array_equal(found.arrays[name], array) for name, array in due.arrays.items())
    paths[1].unlink()
    for place in (paths[0], paths[2], paths[0].parent):
        assert "is one of 3 parts, and m-00002-of-00003.gguf is missing. Download all parts" in refused(place)


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        (0, {"split.count": 2}, "is one part of a model, but its name and its keys (split.no 0, split.count 2)"),
        (0, {"split.count": 0}, "its keys (split.no 0, split.count 0)"),
        (0, {"split.count": True}, "its keys (split.no 0, split.count True)"),
        (1, {"split.no": 2}, "as part 2 of 3 it does not fit the first: 'split.no'"),
        (2, {"split.count": 2}, "as part 3 of 3 it does not fit the first: 'split.count'"),
        (1, {"llama.block_count": 3}, "as part 2 of 3 it does not fit the first: 'llama.block_count'"),
        (0, {"split.tensors.count": 1000}, "as part 2 of 3 it does not fit the first: 'split.tensors.count'"),
        (None, {"split.tensors.count": 1000}, "split.tensors.count is 1000, but there are"),
    ],
)
def test_parts_that_do_not_fit_are_refused(part, change, words, tmp_path):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    paths = in_parts(path, tmp_path / "parts", lambda i, keys: keys | (change if part in (i, None) else {}))
    assert words in refused(paths[0])


def test_a_part_that_was_renamed_says_what_it_is(tmp_path):
    path = export(LLAMA, parameters(LLAMA), tmp_path / "out")
    first = in_parts(path, tmp_path / "parts")[0]
    assert "is one part of a model, but its name" in refused(first.rename(tmp_path / "model.gguf"))


def test_a_head_that_llama_cpp_demands_is_not_taken_for_tied(tmp_path):
    path = export(WHOLE["gpt_neox"], parameters(WHOLE["gpt_neox"]), tmp_path / "out")
    keys, tensors = content_of(path)
    del tensors["output.weight"]
    path.write_bytes(by_description(keys, tensors))
    assert "lacks the tensor output.weight" in refused(path)
    del keys["gptneox.use_parallel_residual"]
    path.write_bytes(by_description(keys, tensors))
    assert "its gptneox.use_parallel_residual is None, but must be true or false" in refused(path)


@pytest.mark.parametrize("goal", ["hf", "gguf"])
def test_an_export_that_is_interrupted_leaves_nothing(goal, tmp_path, monkeypatch):
    run = Checkpoint(TrainConfig(model=LLAMA), parameters(LLAMA), {}, {"step": 0}, tokenizer=BYTES)
    writes = 0

    def then_interrupted(content):
        yield from content
        raise KeyboardInterrupt

    def counted(path, content):
        nonlocal writes
        writes += 1
        write_new(path, then_interrupted(content) if writes == (3 if goal == "hf" else 1) else content)

    monkeypatch.setattr(writing, "write_new", counted)
    with pytest.raises(KeyboardInterrupt):
        exchange.write(run, goal, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
    monkeypatch.undo()
    assert exchange.write(run, goal, tmp_path / "out")


def test_the_depth_by_which_llama_cpp_changes_the_scores_of_gemma3(tmp_path):
    config = replace(
        WHOLE["gemma3_text of six layers"], n_layers=62, d_model=8, d_ff=8, d_head=4, n_heads=1, n_kv_heads=1
    )
    with pytest.raises(ConfigError, match="divides scores by the root of 8 at 62 layers"):
        export(config, parameters(config), tmp_path / "out")
    path = export(replace(config, n_layers=61), parameters(replace(config, n_layers=61)), tmp_path / "out")
    with_keys(path, {"gemma3.block_count": 62})
    assert "llama.cpp divides scores by the root of 8 in a gemma3 of 62 layers" in refused(path)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("attention.sliding_window_pattern", 0, "its gemma3.attention.sliding_window_pattern is 0"),
        ("attention.sliding_window_pattern", 2.5, "its gemma3.attention.sliding_window_pattern is 2.5"),
        ("attention.sliding_window", 2.5, "its gemma3.attention.sliding_window is 2.5"),
        ("rope.freq_base_swa", 0.5, "rope_window_base is 0.5, but must be above 1"),
        ("attention.sliding_window_pattern", 1, ""),
        ("attention.sliding_window_pattern", 3, ""),
    ],
)
def test_every_so_many_layers_of_gemma3_see_all(key, value, words, tmp_path):
    config = WHOLE["gemma3_text of six layers"]
    path = export(config, parameters(config), tmp_path / "out")
    with_keys(path, {f"gemma3.{key}": value})
    if words:
        assert words in refused(path)
    else:
        assert exchange.read(path).config.layer_letters == {1: "ggggggg", 3: "wwgwwgw"}[value]
