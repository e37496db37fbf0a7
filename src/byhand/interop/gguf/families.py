"""Architectures of llama.cpp: each is a transformers family with a GGUF's keys and tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from byhand.config import ModelConfig
from byhand.interop.families import Family
from byhand.interop.gguf import layers, rotation
from byhand.interop.hugging_face.families import (
    GEMMA,
    GEMMA3,
    GPT2,
    GPT_NEOX,
    LLAMA,
    OLMO2,
    QWEN2,
    QWEN3,
    SMOLLM3,
    STABLELM,
)  # fmt: skip
from byhand.interop.tensors import facts

Problems = Callable[[ModelConfig], list[tuple[str, str]]]
SIZES = {  # keys, after the architecture's name, and our settings
    "context_length": "seq_len",
    "embedding_length": "d_model",
    "block_count": "n_layers",
    "attention.head_count": "n_heads",
    "feed_forward_length": "d_ff",
}
LEARNED = SIZES | {"attention.layer_norm_epsilon": "norm_eps"}
ROTARY = SIZES | {
    "attention.head_count_kv": "n_kv_heads",
    "attention.key_length": "d_head",
    "attention.layer_norm_rms_epsilon": "norm_eps",
    "rope.freq_base": "rope_base",
}
PARTLY = LEARNED | {"rope.dimension_count": "rope_fraction", "rope.freq_base": "rope_base"}  # in columns of a head
WIDTHS = {"attention.value_length": "d_head", "rope.dimension_count": "d_head"}  # must equal the keys' width
MISSING = {  # llama.cpp's defaults for missing keys
    "attention.head_count_kv": None,
    "attention.key_length": None,
    "rope.freq_base": 10000.0,
    "rope.dimension_count": None,
    "attention.sliding_window": None,
    layers.LOCAL: 10000.0,
}
USUAL = {  # keys that change the computation, with the values that do not
    **rotation.ONLY, "attention.causal": (True,), "attention.sliding_window": (0,), "expert_count": (0,),
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

OUTPUTS = """
    blocks.*.ln_1.gain = blk.*.post_attention_norm.weight
    blocks.*.ln_2.gain = blk.*.post_ffw_norm.weight
"""
BEHIND = """
    blocks.*.ln_1_out.gain = blk.*.post_attention_norm.weight
    blocks.*.ln_2_out.gain = blk.*.post_ffw_norm.weight
"""


def _family(
    of: Family, keys: Mapping[str, str], qkv: str, name: str = "", more: Problems = lambda config: [], **changes: Any
) -> Family:
    """Return llama.cpp's form of a transformers family; `more` says what else llama.cpp cannot compute."""
    name = name or of.name
    changes["flags"] = prefixed(name, changes.get("flags", {}))
    return replace(
        of, name=name, keys=prefixed(name, keys), missing=prefixed(name, MISSING), only=prefixed(name, USUAL),
        tensors=facts(NAMES + qkv), windowed=False,
        further=lambda config: rotation.problems(config) + more(config), **changes,
    )  # fmt: skip


def prefixed(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with the architecture's name before its keys, as in files."""
    return {f"{name}.{key}": value for key, value in table.items()}


KEYED = ("none", *rotation.KINDS)  # llama.cpp looks for llama3's tensor only in llama models
# gelu is the tanh form, which llama.cpp uses for gptneox too; of qwen3's biases it reads only those of q, k, v
KNOWN = {
    "gpt2": _family(GPT2, LEARNED, PACKED, activations={"gelu": "gelu"}),
    "llama": _family(LLAMA, ROTARY, APART, pairing="neighbours"),
    "gptneox": _family(
        GPT_NEOX,
        PARTLY,
        PACKED,
        "gptneox",
        activations={"gelu_exact": "gelu"},
        settings={**GPT_NEOX.settings, "attention_bias": ("all",), "tied_embeddings": (False,)},
        flags={"use_parallel_residual": "parallel_residual"},
    ),
    "stablelm": _family(
        STABLELM,
        PARTLY | {"attention.head_count_kv": "n_kv_heads"},
        APART,
        settings={**STABLELM.settings, "tied_embeddings": (False,)},
    ),
    "olmo2": _family(
        OLMO2,
        {key: ours for key, ours in ROTARY.items() if ours != "d_head"},
        APART + OUTPUTS,
        settings={**OLMO2.settings, "rope_scaling": KEYED, "attention_bias": ("none",)},
    ),
    "gemma": _family(
        GEMMA,
        ROTARY,
        APART,
        settings={**GEMMA.settings, "attention_bias": ("none",), "rope_scaling": KEYED, "tied_embeddings": (True,)},
    ),
    "gemma3": _family(
        GEMMA3,
        ROTARY | {"attention.sliding_window": "attention_window", layers.LOCAL: "rope_window_base"},
        APART + BEHIND,
        "gemma3",
        settings={**GEMMA3.settings, "attention_bias": ("none",)},
        more=layers.of_gemma3,
    ),
    "smollm3": _family(
        SMOLLM3,
        ROTARY,
        APART,
        pairing="neighbours",
        layers={"g": "rotary", "n": "none"},
        settings={**SMOLLM3.settings, "attention_bias": ("none",), "mlp_bias": (False,), "rope_scaling": KEYED},
        more=layers.of_smollm3,
    ),
    "qwen2": _family(QWEN2, ROTARY, APART, settings={**QWEN2.settings, "rope_scaling": KEYED}),
    "qwen3": _family(
        QWEN3, ROTARY, APART, settings={**QWEN3.settings, "rope_scaling": KEYED, "attention_bias": ("none",)}
    ),
}
