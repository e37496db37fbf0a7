"""The model in one function, without layers: what they must compute, bit for bit, and what they must begin with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from byhand.config import ModelConfig
from byhand.engine import Tensor, registry
from byhand.equations import (
    add_positional,
    causal_self_attention,
    cross_entropy,
    embedding,
    layer_norm,
    linear,
    residual,
    transpose,
)


def initial(name: str, shape: tuple[int, ...], n_layers: int, seed: int, dtype: Any) -> np.ndarray:
    """Return an array's first numbers by its name alone."""
    if name.endswith(".gain"):
        return np.ones(shape, dtype)
    if len(shape) == 1:
        return np.zeros(shape, dtype)
    std = 0.02 / math.sqrt(2 * n_layers) if name.endswith((".w_proj", ".w_out")) else 0.02
    return (std * np.random.default_rng([seed, *name.encode()]).standard_normal(shape)).astype(dtype)


def loss(config: ModelConfig, p: dict[str, Tensor], tokens: Any, targets: Any) -> Tensor:
    """Return the loss, every equation applied by hand."""

    def norm(x: Tensor, name: str) -> Tensor:
        affine = [p[f"{name}.gain"], p[f"{name}.bias"]] if config.norm_affine else []
        return layer_norm(x, *affine, eps=1e-5)

    x = add_positional(embedding(p["wte"], tokens), p["wpe"])
    for block in (f"blocks.{i}" for i in range(config.n_layers)):
        weights = [p[f"{block}.attn.{k}"] for k in ("w_qkv", "b_qkv", "w_proj", "b_proj")]
        h = norm(x, f"{block}.ln_1") if config.norm_position == "pre" else x
        x = residual(x, causal_self_attention(h, *weights, n_heads=config.n_heads, causal=config.causal, name="a"))
        x = norm(x, f"{block}.ln_1") if config.norm_position == "post" else x
        h = norm(x, f"{block}.ln_2") if config.norm_position == "pre" else x
        h = registry[config.activation](linear(h, p[f"{block}.mlp.w_fc"], p[f"{block}.mlp.b_fc"]))
        x = residual(x, linear(h, p[f"{block}.mlp.w_out"], p[f"{block}.mlp.b_out"]))
        x = norm(x, f"{block}.ln_2") if config.norm_position == "post" else x
    x = norm(x, "ln_f") if config.norm_position == "pre" else x
    w = transpose(p["wte"]) if config.tied_embeddings else p["lm_head.w"]
    return cross_entropy(linear(x, w, *([p["lm_head.b"]] if config.lm_head_bias else [])), targets)
