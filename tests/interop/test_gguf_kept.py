"""A GGUF that is exported again: bytes of tensors that did not change, types of those that did."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from byhand.errors import ByhandError
from byhand.files.weights import OpenFile, Stored
from byhand.formats.registry import FORMATS
from byhand.interop import exchange
from byhand.interop.gguf.file import GGUF, content
from byhand.interop.gguf.kept import FILE_TYPE
from byhand.tokenizers.byte import BYTES
from interop.run_cases import WHOLE, parameters
from interop.test_gguf import export, in_parts

CONFIG = replace(WHOLE["llama"], d_model=256, d_ff=256, n_layers=1, d_head=4)
KINDS = {
    "token_embd.weight": "q6_k", "blk.0.attn_q.weight": "q4_k", "blk.0.ffn_gate.weight": "q8_0",
    "blk.0.ffn_up.weight": "q4_0", "blk.0.ffn_down.weight": "q4_k", "output.weight": "float16",
}  # fmt: skip


def tensors_of(path):
    with OpenFile(path) as opened:
        file = GGUF(opened)
        return file.keys, {name: (tensor.kind.name, file.stored(name)) for name, tensor in file.tensors.items()}


def written(place, config=CONFIG, keys=None, data=None):
    """Write a GGUF of mixed types, with blocks of random bytes."""
    rng = np.random.default_rng(0)
    with OpenFile(export(config, parameters(config), place / "float32")) as opened:
        file, tensors, whole = GGUF(opened), {}, []
        for name, tensor in file.tensors.items():
            tensors[name] = Stored(FORMATS[KINDS.get(name, "float32")], tensor.shape, 0)
            drawn = rng.integers(0, 60, tensors[name].size, dtype=np.uint8).tobytes()  # every float16 is finite
            whole.append((name, (data or {}).get(name, drawn if name in KINDS else file.stored(name))))
    (path := place / "model.gguf").write_bytes(b"".join(content(file.keys | (keys or {}), tensors, whole)))
    return path


def again(model, like, out, dtype="float32"):
    return exchange.write(exchange.as_checkpoint(model, BYTES), "gguf", out, dtype, like)[0]


def test_an_unchanged_model_is_the_same_file_whole_or_in_parts(tmp_path, caplog):
    path = written(tmp_path, keys={FILE_TYPE: 15})
    parts = in_parts(path, tmp_path / "in")  # of float32
    with caplog.at_level(logging.INFO):
        made = again(exchange.read(path), path, tmp_path / "whole")
        joined = again(exchange.read(path), parts[1], tmp_path / "out")
    assert made.read_bytes() == path.read_bytes()
    assert f"12 of 12 tensors keep their bytes from {path}" in caplog.messages
    assert f"12 of 12 tensors keep their bytes from {parts[0]}" in caplog.messages
    assert all(np.array_equal(a, exchange.read(path).arrays[n]) for n, a in exchange.read(joined).arrays.items())


def test_what_changed_has_the_type_of_the_file_or_that_of_dtype(tmp_path, caplog):
    path = written(tmp_path, keys={FILE_TYPE: 15})
    model = exchange.read(path)
    for name in ("wte", "blocks.0.mlp.w_gate", "blocks.0.mlp.w_out", "lm_head.w"):
        model.arrays[name][0, 0] += 1
    model.arrays["lm_head.w"][0, 0] = 1e5  # too large for float16
    with caplog.at_level(logging.INFO):
        keys, found = tensors_of(again(model, path, tmp_path / "out", "bfloat16"))
    (_, before), (_, all_in_8) = tensors_of(path), tensors_of(again(model, None, tmp_path / "eight", "q8_0"))
    assert {name for name in found if found[name] != before[name]} == {
        "token_embd.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_down.weight", "output.weight",
    }  # fmt: skip
    assert found["blk.0.ffn_gate.weight"] == all_in_8["blk.0.ffn_gate.weight"]
    assert {found[name][0] for name in ("token_embd.weight", "blk.0.ffn_down.weight", "output.weight")} == {
        "bfloat16"
    }
    assert "8 of 12 tensors keep their bytes" in caplog.text
    assert "the others are written as BF16, Q8_0" in caplog.text
    assert keys[FILE_TYPE] == 15
    small = replace(CONFIG, d_model=32, d_ff=32)
    keys, found = tensors_of(exchange_of(small, path, tmp_path / "small"))
    assert {kind for kind, _ in found.values()} == {"float32", "float16", "q8_0", "q4_0"}


def exchange_of(config, like, out):
    """Export a model of other sizes like a file."""
    run = exchange.as_checkpoint(exchange.read(export(config, parameters(config), out / "plain")), BYTES)
    return exchange.write(run, "gguf", out / "like", like=like)[0]


def test_factors_of_rotation_that_are_rounded_otherwise_are_kept(tmp_path):
    scaled = {"rope_scaling": "llama3", "rope_factor": 8.0, "rope_original_len": 64, "rope_fast": 4.0}
    config = replace(CONFIG, d_head=16, rope_base=100.0, **scaled)
    plain = tensors_of(export(config, parameters(config), tmp_path / "plain"))[1]["rope_freqs.weight"][1]
    near = np.nextafter(np.frombuffer(plain, "<f4"), np.float32(0)).clip(1)
    path = written(tmp_path, config, data={"rope_freqs.weight": near.tobytes()})
    made = tensors_of(again(exchange.read(path), path, tmp_path / "out"))[1]["rope_freqs.weight"][1]
    assert made == near.tobytes() != plain


@pytest.mark.parametrize("goal", ["hf", "peft"])
def test_other_goals_refuse_it(goal, tmp_path):
    path = written(tmp_path)
    with pytest.raises(ByhandError, match="--like is for a GGUF"):
        exchange.write(exchange.as_checkpoint(exchange.read(path), BYTES), goal, tmp_path / "out", like=path)
    with pytest.raises(ByhandError, match="cannot read"):
        again(exchange.read(path), tmp_path / "missing", tmp_path / "out")
    assert not (tmp_path / "out").exists()
