"""Pairs of rotated numbers in queries and keys: two orders of the same columns.

halves      i and i + D/2, as in Hugging Face and GGUF's qwen models
neighbours  2i and 2i + 1, as in the paper and GGUF's llama models

Permuting the columns of q and k in each head converts between the two. A model read in the wrong order silently
computes wrong logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from byhand.config import ModelConfig

TURNED = (".w_qkv", ".w_qkv_b", ".b_qkv", ".q_gain", ".k_gain")


def with_pairing(
    arrays: Mapping[str, np.ndarray], config: ModelConfig, pairing: str
) -> tuple[dict[str, np.ndarray], ModelConfig]:
    """Return the equivalent model with this pairing: the columns of q and k are permuted."""
    if config.positions != "rotary" or config.rope_pairing == pairing:
        return dict(arrays), config
    order = column_order(config.head_width, config.rotary_width, pairing)
    packed = np.arange((config.n_heads + 2 * config.kv_heads) * config.head_width)
    turned = packed.reshape(-1, config.head_width)[: -config.kv_heads]  # a row for each head of queries and keys
    turned[...] = turned[:, order]
    found = {  # gains of one head, or of all heads: laid out like the queries
        name: np.ascontiguousarray(array[..., packed[: array.shape[-1]]]) if name.endswith(TURNED) else array
        for name, array in arrays.items()
    }
    return found, replace(config, rope_pairing=pairing)


def column_order(width: int, rotated: int, pairing: str) -> np.ndarray:
    """Return the permutation of a head's columns from the other pairing to this one; the rest stays."""
    order = np.arange(width)
    pairs = (2, -1) if pairing == "neighbours" else (-1, 2)  # from halves: pair p is column p of this table
    order[:rotated] = order[:rotated].reshape(pairs).T.reshape(-1)
    return order
