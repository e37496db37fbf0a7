"""Families of transformers with different layers, or other positions of norms; see `alike.py` and `layers.py`."""

from __future__ import annotations

from dataclasses import replace

from byhand.config import ModelConfig
from byhand.interop.families import Family
from byhand.interop.hugging_face.alike import GPT2, LLAMA, LLAMA_TENSORS, ONLY
from byhand.interop.tensors import facts

GPT_NEO = Family(
    name="gpt_neo",
    model="GPTNeoForCausalLM",
    prefix="transformer.",
    settings={
        "positions": ("learned",), "norm": ("layer",), "attention_bias": ("out",), "mlp_bias": (True,),
        "attention_divisor": (1.0,),
    },
    activation="activation_function",
    activations=GPT2.activations,
    keys={
        "vocab_size": "vocab_size", "max_position_embeddings": "seq_len", "hidden_size": "d_model",
        "num_layers": "n_layers", "num_heads": "n_heads", "intermediate_size": "d_ff",
        "layer_norm_epsilon": "norm_eps", "tie_word_embeddings": "tied_embeddings",
    },
    missing={"intermediate_size": None, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True},
    twins={"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"},
    layers={"g": "global", "w": "local"},
    window={"window_size": 256},
    only=ONLY,
    tensors=facts("""
    wte = wte.weight
    wpe = wpe.weight
    blocks.*.ln_1.gain = h.*.ln_1.weight
    blocks.*.ln_1.bias = h.*.ln_1.bias
    blocks.*.attn.w_qkv = h.*.attn.attention.{q,k,v}_proj.weight : T
    blocks.*.attn.w_proj = h.*.attn.attention.out_proj.weight : T
    blocks.*.attn.b_proj = h.*.attn.attention.out_proj.bias
    blocks.*.ln_2.gain = h.*.ln_2.weight
    blocks.*.ln_2.bias = h.*.ln_2.bias
    blocks.*.mlp.w_fc = h.*.mlp.c_fc.weight : T
    blocks.*.mlp.b_fc = h.*.mlp.c_fc.bias
    blocks.*.mlp.w_out = h.*.mlp.c_proj.weight : T
    blocks.*.mlp.b_out = h.*.mlp.c_proj.bias
    ln_f.gain = ln_f.weight
    ln_f.bias = ln_f.bias
    lm_head.w = lm_head.weight : T
"""),
)  # fmt: skip


def _whole_divisor(config: ModelConfig) -> list[tuple[str, str]]:
    """Return the values of query_pre_attn_scalar that transformers cannot read."""
    if config.score_divisor.is_integer():
        return []
    return [(f"attention_divisor {config.score_divisor:g} is not an integer", "with an integer --attention-divisor")]


GEMMA = replace(
    LLAMA,
    name="gemma",
    model="GemmaForCausalLM",
    activations={"geglu": "gelu_pytorch_tanh"},
    settings={
        **LLAMA.settings, "scaled_embeddings": (True,), "attention_bias": ("none", "all"), "mlp_bias": (False,),
    },
    missing={
        "num_key_value_heads": 16, "head_dim": 256, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
        "rope_theta": 10000.0,
    },
    flags={"attention_bias": "attention_bias"},
    only={**ONLY, "use_bidirectional_attention": (False, None)},
    tensors=LLAMA_TENSORS + facts("""
    blocks.*.ln_1.gain = layers.*.input_layernorm.weight : 1
    blocks.*.ln_2.gain = layers.*.post_attention_layernorm.weight : 1
    ln_f.gain = norm.weight : 1
"""),
)  # fmt: skip
GEMMA3 = replace(
    GEMMA,
    name="gemma3_text",
    model="Gemma3ForCausalLM",
    activation="hidden_activation",
    settings={
        **GEMMA.settings, "norm_position": ("both",), "qk_norm": (True,), "rope_scaling": ("none", "linear"),
    },
    keys={
        **LLAMA.keys, "query_pre_attn_scalar": "attention_divisor", "rope_local_base_freq": "rope_window_base",
        "final_logit_softcapping": "logit_softcap",
    },
    missing={
        "num_key_value_heads": 4, "head_dim": 256, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
        "rope_theta": 1e6, "query_pre_attn_scalar": 256, "rope_local_base_freq": 10000.0,
        "final_logit_softcapping": 0.0,
    },
    layers={"g": "full_attention", "w": "sliding_attention"},
    window={"sliding_window": 4096},
    only={**GEMMA.only, "attn_logit_softcapping": (None,)},
    further=_whole_divisor,
    tensors=GEMMA.tensors + facts("""
    blocks.*.ln_1_out.gain = layers.*.post_attention_layernorm.weight : 1
    blocks.*.attn.q_gain = layers.*.self_attn.q_norm.weight : 1
    blocks.*.attn.k_gain = layers.*.self_attn.k_norm.weight : 1
    blocks.*.ln_2.gain = layers.*.pre_feedforward_layernorm.weight : 1
    blocks.*.ln_2_out.gain = layers.*.post_feedforward_layernorm.weight : 1
"""),
)  # fmt: skip
SMOLLM3 = replace(
    LLAMA,
    name="smollm3",
    model="SmolLM3ForCausalLM",
    keys={key: ours for key, ours in LLAMA.keys.items() if ours != "d_head"},
    missing={
        "num_key_value_heads": 4, "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "rope_theta": 2e6,
    },
    layers={"g": "full_attention", "w": "sliding_attention", "n": "full_attention"},
    window={"use_sliding_window": False, "sliding_window": None},
)  # fmt: skip
