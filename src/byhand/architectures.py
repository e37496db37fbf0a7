"""Well-known architectures as model configs.

The first three have the shape of their smallest published model, `microgpt` has its own; the tokenizer sets the
vocabulary. `modern` has the size of the preset nano.
"""

from dataclasses import replace

from byhand.config import ModelConfig

GPT2 = ModelConfig(
    seq_len=1024,
    d_model=768,
    n_layers=12,
    n_heads=12,
    norm_affine=True,
    lm_head_bias=False,
    tied_embeddings=True,
)
"""GPT-2 small. Source: Radford et al. 2019, Language Models are Unsupervised Multitask Learners."""

LLAMA = ModelConfig(
    seq_len=2048,
    d_model=576,
    n_layers=30,
    n_heads=9,
    n_kv_heads=3,
    positions="rotary",
    norm="rms",
    norm_affine=True,
    activation="swiglu",
    attention_bias="none",
    mlp_bias=False,
    lm_head_bias=False,
    tied_embeddings=True,
)
"""Llama's architecture in the shape of SmolLM-135M. Source: Touvron et al. 2023, arXiv:2302.13971."""

QWEN3 = replace(
    LLAMA,
    seq_len=4096,
    d_model=1024,
    n_layers=28,
    n_heads=16,
    n_kv_heads=8,
    d_head=128,
    d_ff=3072,
    rope_base=1e6,
    qk_norm=True,
    norm_eps=1e-6,
)
"""Qwen3-0.6B: Llama's choices, with norms of queries and keys. Source: Qwen Team 2025, arXiv:2505.09388."""

MODERN = ModelConfig(
    seq_len=64,
    d_model=128,
    n_layers=4,
    n_heads=4,
    positions="rotary",
    qk_norm=True,
    norm="rms",
    activation="relu_squared",
    attention_bias="none",
    mlp_bias=False,
    lm_head_bias=False,
    zero_init=True,
)
"""Choices of public training-speed records for small models: rotary positions, norms without gains, squared ReLU.

Source: Jordan et al. 2024, modded-nanogpt; Karpathy 2025, nanochat
"""

MICROGPT = ModelConfig(
    seq_len=16,
    d_model=16,
    n_layers=1,
    n_heads=4,
    norm="rms",
    embedding_norm=True,
    final_norm=False,
    activation="relu",
    attention_bias="none",
    mlp_bias=False,
    lm_head_bias=False,
)
"""microgpt: a norm behind the embeddings, none behind the last block. Source: Karpathy 2026, microgpt."""

ARCHITECTURES = {"gpt2": GPT2, "llama": LLAMA, "qwen3": QWEN3, "modern": MODERN, "microgpt": MICROGPT}
