"""Families of transformers with equal layers, one record each; `families.py` lists all.

GPT-2's Conv1D stores weights as [in, out], like ours; the others' nn.Linear as [out, in]. All names except the LM
head's have a prefix, unless the bare model was saved.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from byhand.equations.rotary import SCALINGS
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
PART = "partial_rotary_factor"  # the part of a head that is rotated
FUSED = ("w_qkv", "b_qkv", "w_gate", "w_up")  # one tensor in Phi-3's files: queries, keys, values; gate and up
ONLY: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "is_encoder_decoder": (False,),
    PART: (1.0, None),
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
    copies={"n_ctx": "n_positions"},  # for converters to GGUF
    only={**ONLY, "scale_attn_weights": (True,), "scale_attn_by_inverse_layer_idx": (False,)},
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
PHI3 = replace(
    LLAMA,
    name="phi3",
    model="Phi3ForCausalLM",
    settings={**LLAMA.settings, "attention_bias": ("none",), "mlp_bias": (False,), "rope_scaling": ("none",)},
    keys={key: ours for key, ours in LLAMA.keys.items() if ours != "d_head"} | {PART: "rope_fraction"},
    missing={
        "num_key_value_heads": None, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "rope_theta": 10000.0,
        PART: 1.0,
    },
    flags={},
    window={"sliding_window": None},
    windowed=True,
    tensors=(
        *(fact for fact in LLAMA_TENSORS if not any(name.endswith(FUSED) for name in fact.ours)),
        *facts("""
    blocks.*.attn.w_qkv = layers.*.self_attn.qkv_proj.weight : T
    blocks.*.mlp.{w_gate,w_up} = layers.*.mlp.gate_up_proj.weight : T
"""),
    ),
)  # fmt: skip
STABLELM = replace(
    LLAMA,
    name="stablelm",
    model="StableLmForCausalLM",
    settings={
        **LLAMA.settings, "norm": ("layer",), "attention_bias": ("none", "qkv"), "mlp_bias": (False,),
        "rope_scaling": ("none",),
    },
    keys={
        **{key: ours for key, ours in LLAMA.keys.items() if ours not in ("d_head", "norm_eps")},
        "layer_norm_eps": "norm_eps", PART: "rope_fraction",
    },
    missing={
        "num_key_value_heads": 32, "layer_norm_eps": 1e-5, "tie_word_embeddings": False, "rope_theta": 10000.0,
        PART: 0.25,
    },
    only={**ONLY, "use_parallel_residual": (False,), "qk_layernorm": (False,)},
    flags={"use_qkv_bias": "attention_bias"},
    tensors=LLAMA_TENSORS + facts("""
    blocks.*.ln_1.bias = layers.*.input_layernorm.bias
    blocks.*.ln_2.bias = layers.*.post_attention_layernorm.bias
    ln_f.bias = norm.bias
"""),
)  # fmt: skip
OLMO2 = replace(
    LLAMA,
    name="olmo2",
    model="Olmo2ForCausalLM",
    settings={
        **LLAMA.settings, "norm_position": ("output",), "qk_norm": (True,), "qk_norm_over": ("heads",),
        "mlp_bias": (False,),
    },
    keys={key: ours for key, ours in LLAMA.keys.items() if ours != "d_head"},
    missing={
        "num_key_value_heads": None, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "rope_theta": 10000.0,
    },
    flags={"attention_bias": "attention_bias"},
    tensors=LLAMA_TENSORS + facts("""
    blocks.*.ln_1.gain = layers.*.post_attention_layernorm.weight
    blocks.*.ln_2.gain = layers.*.post_feedforward_layernorm.weight
"""),
)  # fmt: skip
GPT_NEOX = Family(
    name="gpt_neox",
    model="GPTNeoXForCausalLM",
    prefix="gpt_neox.",
    head="embed_out.weight",
    settings={
        "positions": ("rotary",), "norm": ("layer",), "attention_bias": ("none", "all"), "mlp_bias": (True,),
        "parallel_residual": (False, True),
    },
    activations={
        "gelu_exact": "gelu", "gelu": "gelu_new", "relu": "relu", "relu_squared": "relu2", "silu": "silu",
    },
    keys={
        "vocab_size": "vocab_size", "max_position_embeddings": "seq_len", "hidden_size": "d_model",
        "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads", "intermediate_size": "d_ff",
        "layer_norm_eps": "norm_eps", "tie_word_embeddings": "tied_embeddings", "rope_theta": "rope_base",
        PART: "rope_fraction",
    },
    missing={
        "layer_norm_eps": 1e-5, "tie_word_embeddings": False, "rope_theta": 10000.0, PART: 0.25,
        "use_parallel_residual": True, "attention_bias": True,
    },
    flags={"attention_bias": "attention_bias", "use_parallel_residual": "parallel_residual"},
    older={"rotary_emb_base": "rope_theta", "rotary_pct": PART},
    copies={"rotary_emb_base": "rope_theta", "rotary_pct": PART},
    only={key: values for key, values in ONLY.items() if key != PART},
    tensors=facts("""
    wte = embed_in.weight
    blocks.*.ln_1.gain = layers.*.input_layernorm.weight
    blocks.*.ln_1.bias = layers.*.input_layernorm.bias
    blocks.*.attn.w_qkv = layers.*.attention.query_key_value.weight : T H
    blocks.*.attn.b_qkv = layers.*.attention.query_key_value.bias : H
    blocks.*.attn.w_proj = layers.*.attention.dense.weight : T
    blocks.*.attn.b_proj = layers.*.attention.dense.bias
    blocks.*.ln_2.gain = layers.*.post_attention_layernorm.weight
    blocks.*.ln_2.bias = layers.*.post_attention_layernorm.bias
    blocks.*.mlp.w_fc = layers.*.mlp.dense_h_to_4h.weight : T
    blocks.*.mlp.b_fc = layers.*.mlp.dense_h_to_4h.bias
    blocks.*.mlp.w_out = layers.*.mlp.dense_4h_to_h.weight : T
    blocks.*.mlp.b_out = layers.*.mlp.dense_4h_to_h.bias
    ln_f.gain = final_layer_norm.weight
    ln_f.bias = final_layer_norm.bias
    lm_head.w = embed_out.weight : T
"""),
)  # fmt: skip
