"""A model in a GGUF: architectures gpt2, llama, qwen2 and qwen3, read and written."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import ByhandError, ConfigError, DataError
from byhand.files.weights import OpenFile
from byhand.interop.families import FAMILIES, Arrays, Family, completed, family_of, plain
from byhand.interop.foreign import Foreign, require_room
from byhand.interop.gguf import tokens
from byhand.interop.gguf.file import GGUF, MAGIC, Described, content
from byhand.interop.gguf.quantised import BY_NAME, Kind, quantised
from byhand.interop.pairing import with_pairing
from byhand.interop.tensors import facts, from_theirs, pieces, to_theirs
from byhand.tokenizers.tokenizer import Tokenizer

__all__ = ["MAGIC", "files", "read"]
NAME = "model.gguf"
FILE_TYPES = {"F32": 0, "Q4_0": 2, "Q8_0": 7}
PAIRINGS = {"llama": "neighbours"}  # of rotated numbers; halves elsewhere
KNOWN = {  # gelu stands for gpt2's tanh form; llama.cpp reads qwen3's biases of queries, keys and values only
    "gpt2": replace(FAMILIES["gpt2"], activations={"gelu": "gelu"}),
    "llama": FAMILIES["llama"],
    "qwen2": FAMILIES["qwen2"],
    "qwen3": replace(FAMILIES["qwen3"], settings={**FAMILIES["qwen3"].settings, "attention_bias": ("none",)}),
}
SIZES = {  # keys behind the architecture's name, and our settings
    "context_length": "seq_len",
    "embedding_length": "d_model",
    "block_count": "n_layers",
    "attention.head_count": "n_heads",
    "feed_forward_length": "d_ff",
}
GROUPED = {
    "attention.head_count_kv": "n_kv_heads",
    "attention.key_length": "d_head",
    "attention.layer_norm_rms_epsilon": "norm_eps",
    "rope.freq_base": "rope_base",
}
KEYS = {name: SIZES | ({"attention.layer_norm_epsilon": "norm_eps"} if name == "gpt2" else GROUPED) for name in KNOWN}
DEFAULTS = {"n_kv_heads": None, "d_head": None, "rope_base": 10000.0}  # of llama.cpp where a key is missing
PLAIN = {  # keys that change what a model computes, with the values that change nothing
    "rope.scaling.type": ("none",), "rope.scaling.factor": (0.0, 1.0), "rope.scale_linear": (0.0, 1.0),
    "rope.scaling.attn_factor": (1.0,), "attention.causal": (True,), "attention.sliding_window": (0,),
    "expert_count": (0,),
}  # fmt: skip
NAMES = """
    wte = token_embd.weight
    wpe = position_embd.weight
    blocks.*.ln_1.gain = blk.*.attn_norm.weight
    blocks.*.ln_1.bias = blk.*.attn_norm.bias
    blocks.*.attn.q_gain = blk.*.attn_q_norm.weight
    blocks.*.attn.k_gain = blk.*.attn_k_norm.weight
    blocks.*.attn.w_proj = blk.*.attn_output.weight : T
    blocks.*.attn.b_proj = blk.*.attn_output.bias
    blocks.*.ln_2.gain = blk.*.ffn_norm.weight
    blocks.*.ln_2.bias = blk.*.ffn_norm.bias
    blocks.*.mlp.w_fc = blk.*.ffn_up.weight : T
    blocks.*.mlp.b_fc = blk.*.ffn_up.bias
    blocks.*.mlp.w_gate = blk.*.ffn_gate.weight : T
    blocks.*.mlp.b_gate = blk.*.ffn_gate.bias
    blocks.*.mlp.w_up = blk.*.ffn_up.weight : T
    blocks.*.mlp.b_up = blk.*.ffn_up.bias
    blocks.*.mlp.w_out = blk.*.ffn_down.weight : T
    blocks.*.mlp.b_out = blk.*.ffn_down.bias
    ln_f.gain = output_norm.weight
    ln_f.bias = output_norm.bias
    lm_head.w = output.weight : T
"""
PACKED = """
    blocks.*.attn.w_qkv = blk.*.attn_qkv.weight : T
    blocks.*.attn.b_qkv = blk.*.attn_qkv.bias
"""
APART = """
    blocks.*.attn.w_qkv = blk.*.attn_{q,k,v}.weight : T
    blocks.*.attn.b_qkv = blk.*.attn_{q,k,v}.bias
"""
FACTS = {name: facts(NAMES + (PACKED if name == "gpt2" else APART)) for name in KNOWN}
EXACT = {"position_embd.weight"}  # is added, not multiplied: stays float32


def read(path: Path) -> Foreign:
    """Return the model of a file. DataError or ConfigError if it is damaged or cannot be one of ours."""
    with OpenFile(path) as opened:
        file = GGUF(opened)
        try:
            family, config = _config(file)
        except ByhandError as error:
            raise DataError(f"{path}: {error}") from None
        require_room(config)
        due = {piece.theirs: piece.shape for piece in pieces(config, FACTS[family.name])}
        for name in sorted(due.keys() - file.tensors.keys())[:1]:
            raise DataError(f"{path} lacks the tensor {name}. Use a whole file of the architecture {family.name}.")
        for name in sorted(file.tensors.keys() - due.keys())[:1]:
            raise DataError(f"{path} has the tensor {name[:80]!r}, which cannot be computed here. Use another model.")
        for name, shape in due.items():
            if file.tensors[name].shape != shape:
                raise DataError(f"{path}: {name} has the shape {file.tensors[name].shape}, but its keys say {shape}.")
        arrays = from_theirs(file.read, config, FACTS[family.name])
        arrays, config = with_pairing(arrays, config, "halves")
        described = partial(tokens.of_keys, file.keys, config.vocab_size, path)
        return Foreign(f"GGUF {family.name}", config, arrays, described)


def _config(file: GGUF) -> tuple[Family, ModelConfig]:
    """Return the family and the config that a file's keys and tensors say."""
    name = file.keys.get("general.architecture")
    if not isinstance(name, str) or name not in KNOWN:
        raise DataError(f"its architecture is {str(name)[:40]!r}. Use a model of {', '.join(KNOWN)}.")
    family, keys = KNOWN[name], _of(name, file.keys)
    for key, values in PLAIN.items():
        if key in keys and keys[key] not in values:
            raise DataError(f"its {name}.{key} is {str(keys[key])[:40]}, which cannot be computed here.")
    settings: dict[str, Any] = {ours: values[0] for ours, values in family.allowed().items()}
    for key, ours in KEYS[name].items():
        value = keys.get(key, DEFAULTS.get(ours))
        if value is None and ours not in DEFAULTS:
            raise DataError(f"it lacks the key {name}.{key}.")
        settings[ours] = float(str(np.float32(value))) if isinstance(value, float) else value
    if name != "gpt2":
        width = settings["d_head"] or _whole(settings["d_model"]) // max(1, _whole(settings["n_heads"]))
        for key in ("attention.value_length", "rope.dimension_count"):
            if keys.get(key, width) != width:
                raise DataError(f"its {name}.{key} is {str(keys[key])[:20]}, but its heads have the width {width}.")
        settings["rope_pairing"] = PAIRINGS.get(name, "halves")
    if "all" in family.settings["attention_bias"] and "blk.0.attn_output.bias" in file.tensors:
        settings["attention_bias"] = "all"
    if True in family.settings["mlp_bias"] and "blk.0.ffn_down.bias" in file.tensors:
        settings["mlp_bias"] = True
    settings["tied_embeddings"] = "output.weight" not in file.tensors
    table = file.tensors.get("token_embd.weight")
    if table is None:
        raise DataError("it lacks the tensor token_embd.weight.")
    return family, plain(ModelConfig(vocab_size=table.shape[0], **settings))


def _of(name: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return an architecture's keys without its name; of a list with one value for all blocks, that value."""
    found = {key.removeprefix(f"{name}."): value for key, value in keys.items() if key.startswith(f"{name}.")}
    return {k: v[0] if isinstance(v, array) and len(set(v)) == 1 else v for k, v in found.items()}


def _whole(value: Any) -> int:
    return value if type(value) is int else 0


def files(config: ModelConfig, arrays: Arrays, tokenizer: Tokenizer, quantize: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the file that llama.cpp loads. ConfigError if no architecture has this model.

    quantize  "q8_0" or "q4_0": matrices whose rows are multiples of 32; the others, gains and biases stay float32
    """
    family = family_of(config, KNOWN, "GGUF")
    full, whole = completed(arrays, config, family, PAIRINGS.get(family.name, "halves"))
    known, kind = FACTS[family.name], BY_NAME[quantize.upper() or "F32"]
    tensors = dict[str, Described]()
    for piece in pieces(whole, known):
        tensors[piece.theirs] = described = _described(piece.theirs, piece.shape, kind)
        if described.kind.block > 1 and np.abs(full[piece.ours]).max() > kind.most:
            raise ConfigError(
                f"{piece.ours} holds numbers larger than {kind.name} can ({kind.most:,.0f}). "
                f"Export without --quantize."
            )
    if quantize and all(tensor.kind.name == "F32" for tensor in tensors.values()):
        raise ConfigError(
            f"{quantize} packs rows of {kind.block} numbers, and no matrix of this model has such. "
            f"Export without --quantize, or train a model with a --d-model that is a multiple of {kind.block}."
        )
    keys = _keys(family, whole, kind) | tokens.as_keys(tokenizer, whole.vocab_size)
    theirs = to_theirs(full, whole, known)

    def data(name: str) -> bytes:
        found, numbers = next(theirs)
        assert found == name, (found, name)
        kind = tensors[name].kind
        return (numbers.astype("<f4", copy=False) if kind.block == 1 else quantised(numbers, kind)).tobytes()

    yield NAME, content(keys, tensors, data)


def _described(name: str, shape: tuple[int, ...], kind: Kind) -> Described:
    packed = len(shape) > 1 and shape[-1] % kind.block == 0 and name not in EXACT
    return Described(kind if packed else BY_NAME["F32"], shape, 0)


def _keys(family: Family, config: ModelConfig, kind: Kind) -> dict[str, Any]:
    name = family.name
    keys: dict[str, Any] = {"general.architecture": name, "general.name": "byhand"}
    keys |= {"general.file_type": FILE_TYPES[kind.name], "general.quantization_version": 2}
    whole = {"d_ff": config.ff_width, "n_kv_heads": config.kv_heads, "d_head": config.head_width}
    keys |= {f"{name}.{key}": whole.get(ours, getattr(config, ours)) for key, ours in KEYS[name].items()}
    if name == "gpt2":
        return keys
    width = config.head_width
    return keys | {
        f"{name}.attention.value_length": width, f"{name}.rope.dimension_count": width,
        f"{name}.vocab_size": config.vocab_size,
    }  # fmt: skip
