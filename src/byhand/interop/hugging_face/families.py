"""Families of transformers, each as one record: its settings, the keys of its config.json, its tensors.

GPT-2's Conv1D stores weights as [in, out], like ours; nn.Linear of the others stores [out, in]. All names but that of
the LM head have a prefix, unless the bare model was saved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from byhand.equations.rotary import SCALINGS
from byhand.errors import DataError
from byhand.interop.families import Family
from byhand.interop.tensors import facts

GPT2_TENSORS = facts("""
    wte = wte.weight
    wpe = wpe.weight
    blocks.*.ln_1.gain = h.*.ln_1.weight
    blocks.*.ln_1.bias = h.*.ln_1.bias
    blocks.*.attn.w_qkv = h.*.attn.c_attn.weight
    blocks.*.attn.b_qkv = h.*.attn.c_attn.bias
    blocks.*.attn.w_proj = h.*.attn.c_proj.weight
    blocks.*.attn.b_proj = h.*.attn.c_proj.bias
    blocks.*.ln_2.gain = h.*.ln_2.weight
    blocks.*.ln_2.bias = h.*.ln_2.bias
    blocks.*.mlp.w_fc = h.*.mlp.c_fc.weight
    blocks.*.mlp.b_fc = h.*.mlp.c_fc.bias
    blocks.*.mlp.w_out = h.*.mlp.c_proj.weight
    blocks.*.mlp.b_out = h.*.mlp.c_proj.bias
    ln_f.gain = ln_f.weight
    ln_f.bias = ln_f.bias
    lm_head.w = lm_head.weight : T
""")
LLAMA_TENSORS = facts("""
    wte = embed_tokens.weight
    blocks.*.ln_1.gain = layers.*.input_layernorm.weight
    blocks.*.attn.w_qkv = layers.*.self_attn.{q,k,v}_proj.weight : T
    blocks.*.attn.b_qkv = layers.*.self_attn.{q,k,v}_proj.bias
    blocks.*.attn.q_gain = layers.*.self_attn.q_norm.weight
    blocks.*.attn.k_gain = layers.*.self_attn.k_norm.weight
    blocks.*.attn.w_proj = layers.*.self_attn.o_proj.weight : T
    blocks.*.attn.b_proj = layers.*.self_attn.o_proj.bias
    blocks.*.ln_2.gain = layers.*.post_attention_layernorm.weight
    blocks.*.mlp.w_gate = layers.*.mlp.gate_proj.weight : T
    blocks.*.mlp.b_gate = layers.*.mlp.gate_proj.bias
    blocks.*.mlp.w_up = layers.*.mlp.up_proj.weight : T
    blocks.*.mlp.b_up = layers.*.mlp.up_proj.bias
    blocks.*.mlp.w_out = layers.*.mlp.down_proj.weight : T
    blocks.*.mlp.b_out = layers.*.mlp.down_proj.bias
    ln_f.gain = norm.weight
    lm_head.w = lm_head.weight : T
""")
ONLY: dict[str, tuple[Any, ...]] = {
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "is_encoder_decoder": (False,),
    "partial_rotary_factor": (1.0, None),
    "quantization_config": (None,),
}


GPT2 = Family(
    name="gpt2",
    model="GPT2LMHeadModel",
    prefix="transformer.",
    settings={"positions": ("learned",), "norm": ("layer",), "attention_bias": ("all",), "mlp_bias": (True,)},
    activation="activation_function",
    activations={
        "gelu": "gelu_new", "gelu_exact": "gelu", "relu": "relu", "relu_squared": "relu2", "silu": "silu",
    },
    keys={
        "vocab_size": "vocab_size", "n_positions": "seq_len", "n_embd": "d_model", "n_layer": "n_layers",
        "n_head": "n_heads", "n_inner": "d_ff", "layer_norm_epsilon": "norm_eps",
        "tie_word_embeddings": "tied_embeddings",
    },
    missing={"n_inner": None, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True},
    twins={
        "hidden_size": "n_embd", "max_position_embeddings": "n_positions", "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    copies={"n_ctx": "n_positions"},  # converters to GGUF read it
    only=ONLY,
    tensors=GPT2_TENSORS,
)  # fmt: skip
LLAMA = Family(
    name="llama",
    model="LlamaForCausalLM",
    settings={
        "positions": ("rotary",), "norm": ("rms",), "attention_bias": ("none", "all"), "mlp_bias": (False, True),
        "rope_scaling": ("none", *SCALINGS),
    },
    activations={"swiglu": "silu"},
    keys={
        "vocab_size": "vocab_size", "max_position_embeddings": "seq_len", "hidden_size": "d_model",
        "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads", "num_key_value_heads": "n_kv_heads",
        "head_dim": "d_head", "intermediate_size": "d_ff", "rms_norm_eps": "norm_eps",
        "tie_word_embeddings": "tied_embeddings", "rope_theta": "rope_base",
    },
    missing={
        "num_key_value_heads": None, "head_dim": None, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
        "rope_theta": 10000.0,
    },
    flags={"attention_bias": "attention_bias", "mlp_bias": "mlp_bias"},
    divided=True,
    only=ONLY,
    tensors=LLAMA_TENSORS,
)  # fmt: skip
REQUIRED_GROUPS = {key: value for key, value in LLAMA.missing.items() if key != "num_key_value_heads"}
MISTRAL = replace(
    LLAMA,
    name="mistral",
    model="MistralForCausalLM",
    settings={**LLAMA.settings, "attention_bias": ("none",), "mlp_bias": (False,)},
    missing=REQUIRED_GROUPS,
    flags={},
    window={"sliding_window": 4096},
    windowed=True,
    divided=False,
)
QWEN2 = replace(
    MISTRAL,
    name="qwen2",
    model="Qwen2ForCausalLM",
    settings={**MISTRAL.settings, "attention_bias": ("qkv",)},
    window={"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28},
    windowed=False,
)
QWEN3 = replace(
    QWEN2,
    name="qwen3",
    model="Qwen3ForCausalLM",
    settings={**QWEN2.settings, "qk_norm": (True,), "attention_bias": ("none", "all")},
    missing={**REQUIRED_GROUPS, "head_dim": 128},
    flags={"attention_bias": "attention_bias"},
)
FAMILIES = {family.name: family for family in (GPT2, LLAMA, MISTRAL, QWEN2, QWEN3)}
BUFFERS = r"h\.[0-9]+\.attn\.(masked_)?bias|layers\.[0-9]+\.self_attn\.rotary_emb\.inv_freq|rotary_emb\.inv_freq"
HEAD = "lm_head.weight"


def without_prefixes(path: Path, names: Iterable[Any], *prefixes: str) -> dict[str, Any]:
    """Return the names of a file's tensors, buffers left out, by their names without prefixes.

    Raises DataError if a tensor has no name, or two have the same one.
    """
    found: dict[str, Any] = {}
    for stored in names:
        name = stored if isinstance(stored, str) else ""
        for prefix in prefixes:
            name = name.removeprefix(prefix)
        if not name or name in found:
            raise DataError(f"{path} has a tensor without a name, or one twice. Use another copy.")
        found[name] = stored
    return {name: stored for name, stored in found.items() if not re.fullmatch(BUFFERS, name)}
