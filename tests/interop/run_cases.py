"""Models of ours that have a form in other programs, with parameters that leave no symmetry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byhand.config import ModelConfig
from byhand.model import TinyGPT, declared

GPT2 = ModelConfig(
    vocab_size=256, seq_len=32, d_model=32, n_layers=2, n_heads=4, norm_affine=True, lm_head_bias=False
)
LLAMA = replace(
    GPT2,
    positions="rotary",
    norm="rms",
    activation="swiglu",
    attention_bias="none",
    mlp_bias=False,
    n_kv_heads=2,
    d_ff=64,
)
GEMMA = replace(LLAMA, activation="geglu", scaled_embeddings=True, tied_embeddings=True, d_head=12)
GEMMA3 = replace(
    GEMMA, norm_position="both", qk_norm=True, rope_base=1e6, rope_window_base=1e4, rope_scaling="linear", n_layers=4,
    layer_pattern="wwg", attention_window=8,
)  # fmt: skip
STEEP = {"rope_scaling": "yarn", "rope_base": 100.0}
WHOLE = {  # by family: models with exactly its parameters
    "gpt2": GPT2,
    "gpt2 tied": replace(GPT2, tied_embeddings=True, d_ff=48, norm_eps=1e-3),
    "llama": LLAMA,
    "llama with biases": replace(LLAMA, tied_embeddings=True, attention_bias="all", mlp_bias=True, rope_base=500.0),
    "llama of wide heads": replace(LLAMA, d_head=12, n_kv_heads=1),
    "mistral": replace(LLAMA, attention_window=8),
    "phi3": replace(LLAMA, rope_fraction=0.5, attention_window=8),
    "stablelm": replace(LLAMA, norm="layer", rope_fraction=0.5),
    "stablelm with biases": replace(LLAMA, norm="layer", attention_bias="qkv", d_model=40, rope_fraction=0.8),
    "gpt_neox": replace(
        GPT2, positions="rotary", rope_fraction=0.25, parallel_residual=True, activation="gelu_exact"
    ),
    "gpt_neox in turn": replace(GPT2, positions="rotary", activation="relu", tied_embeddings=True),
    "qwen2": replace(LLAMA, attention_bias="qkv"),
    "llama of angles divided by two": replace(LLAMA, rope_scaling="linear", rope_factor=2.0),
    "llama of llama3's angles": replace(
        LLAMA, d_head=16, rope_base=10.0, rope_scaling="llama3", rope_factor=4.0, rope_original_len=20
    ),
    "mistral of yarn's angles": replace(
        LLAMA, attention_window=8, d_head=12, **STEEP, rope_original_len=40, rope_slow=0.5, rope_fast=2.0
    ),
    "qwen2 of yarn's angles": replace(LLAMA, attention_bias="qkv", **STEEP, rope_factor=4.0, rope_original_len=1000),
    "qwen3 of yarn's angles, as large as before": replace(
        LLAMA, qk_norm=True, d_head=12, **STEEP, rope_factor=3.0, rope_original_len=16, rope_attention=1.0
    ),
    "qwen3": replace(LLAMA, qk_norm=True, d_head=16, tied_embeddings=True),
    "gpt_neo": replace(
        GPT2, n_layers=3, layer_pattern="gw", attention_window=6, attention_divisor=1.0, attention_bias="out"
    ),
    "gemma": GEMMA,
    "gemma3_text": replace(GEMMA3, attention_divisor=20.0),
    "gemma3_text of six layers": replace(
        GEMMA3, n_layers=7, layer_pattern="wwwwwg", attention_window=5, d_ff=32, d_model=16
    ),
    "smollm3": replace(LLAMA, n_layers=4, layer_pattern="gggn", tied_embeddings=True),
    "olmo2": replace(LLAMA, norm_position="output", qk_norm=True, qk_norm_over="heads"),
}
PARTIAL = {  # models that lack parameters which the family has
    "gpt2 without gain": replace(GPT2, norm_affine=False),
    "gpt2 without biases": replace(GPT2, attention_bias="qkv", mlp_bias=False),
    "llama without gain": replace(LLAMA, norm_affine=False),
    "qwen3 without gain": replace(LLAMA, norm_affine=False, qk_norm=True),
    "llama with a bias in the MLP and in q, k, v": replace(LLAMA, attention_bias="qkv", mlp_bias=True),
}


def parameters(config: ModelConfig, seed: int = 0) -> dict[str, np.ndarray]:
    """Return arrays in float32: gains about 1, everything else about 0."""
    rng = np.random.default_rng(seed)
    return {
        name: (0.3 * rng.standard_normal(p.shape) + p.mean).astype(np.float32) for name, p in declared(config).items()
    }


def logits(
    config: ModelConfig, arrays: dict[str, np.ndarray], tokens: list[list[int]], dtype: str = "float64"
) -> np.ndarray:
    """Return the model's logits."""
    return TinyGPT(config, arrays={n: a.astype(dtype) for n, a in arrays.items()}).forward_logits(tokens).data
