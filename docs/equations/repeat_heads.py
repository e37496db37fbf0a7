"""What the page asks: what a cache keeps."""

import math

from byhand.config import ModelConfig
from byhand.layers.attention import SelfAttention


def cache_size(config: ModelConfig) -> tuple[int, int]:
    """Return the columns of W_qkv, and how many numbers the cache keeps for each position."""
    attention = SelfAttention(config, config.layer_kinds[0])
    kept = 2 * math.prod(attention.cache_shape) * config.n_layers
    return attention.parameters()["w_qkv"].shape[1], kept
