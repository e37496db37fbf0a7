"""The original program's initial parameters, under our names, and their order in its files."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import ConfigError
from byhand.interop.seed_program.random import WORD, XorShift64Star
from byhand.model import parameter_shapes

SALTS = {"wte": 0xA11CE, "wpe": 0xBEEF, "lm_head.w": 0xC0FFEE}
BLOCK_SALT = 0x1000
BLOCK_STRIDE = 0x9E3779B97F4A7C15
SALTS_IN_BLOCK = {"attn.w_qkv": 1, "attn.w_proj": 2, "mlp.w_fc": 3, "mlp.w_out": 4}


def initial_parameters(config: ModelConfig, seed: int) -> dict[str, np.ndarray]:
    """Return the original program's initial float32 arrays: N(0, 1/fan_in) for weights, zeros for biases.

    fan_in is C for the two tables as well. Raises ConfigError for a model that the original program lacks.
    """
    require_seed_model(config)
    return {name: _initial_array(name, shape, config, seed) for name, shape in parameter_shapes(config).items()}


def _initial_array(name: str, shape: tuple[int, ...], config: ModelConfig, seed: int) -> np.ndarray:
    if len(shape) == 1:
        return np.zeros(shape, np.float32)
    fan_in = config.ff_width if name.endswith("w_out") else config.d_model
    return XorShift64Star(_array_seed(name, seed)).normal(shape, 1.0 / math.sqrt(fan_in))


def _array_seed(name: str, seed: int) -> int:
    """Return the seed of an array's generator."""
    if name in SALTS:
        return seed ^ SALTS[name]
    _, block, within = name.split(".", 2)
    return seed ^ ((BLOCK_SALT + int(block) * BLOCK_STRIDE) & WORD) ^ SALTS_IN_BLOCK[within]


def require_seed_model(config: ModelConfig) -> None:
    """Raise ConfigError for a setting that the original program lacks: its model is our default one.

    Then `parameter_shapes` has the order of its files: wte, wpe, each block, the LM head.
    """
    plain = ModelConfig(
        vocab_size=config.vocab_size, seq_len=config.seq_len, d_model=config.d_model, n_layers=config.n_layers
    )
    for field in fields(config):
        name = "ff_width" if field.name == "d_ff" else field.name
        value, only = getattr(config, name), getattr(plain, name)
        if value != only:
            has = "has two tables" if name == "tied_embeddings" else f"knows only {only}"
            raise ConfigError(f"{name} is {value}, but the original program {has}. Keep byhand's own format.")
