"""Generated facts about variants of attention: pairs of columns and their angles, savings of shared heads."""

from __future__ import annotations

import math
from dataclasses import replace

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pages.blocks.family import PUBLISHED
from byhand.book.pages.blocks.markdown import Rows, table_block
from byhand.config import ModelConfig
from byhand.equations.rotary import PAIRINGS, SCALINGS, frequencies, pair_of, slowed
from byhand.layers.attention import SelfAttention


@table_block(
    "Pair|Columns, `halves`|Columns, `neighbours`|Radians per position|Positions per full turn",
    "数对|列，`halves`|列，`neighbours`|每个位置转的弧度|转一整圈要多少个位置",
)
def rotary_pairs(width: str) -> Rows:
    """The pairs of a head of this width in both pairings, with the usual base: angles, and positions for a turn."""
    for p, angle in enumerate(frequencies(ModelConfig.rope_base, int(width))):
        pairs = [
            [str(c) for c in range(int(width)) if (pair_of(c, int(width), pairing) or (None,))[0] == p]
            for pairing in PAIRINGS
        ]
        yield p, *map(", ".join, pairs), decimal(angle), f"{math.tau / angle:,.1f}"


STRETCHED = {  # a model of 2,048 positions that is to read four times as many
    kind: ModelConfig(positions="rotary", rope_scaling=kind, rope_factor=4, rope_original_len=2048)
    for kind in SCALINGS
}


@table_block(
    "Pair|Turns in {L:,} positions|".format(L=STRETCHED["yarn"].rope_original_len)
    + "|".join(f"$`s_p`$, `{kind}`" for kind in SCALINGS),
    "数对|{L:,} 个位置内转的圈数|".format(L=STRETCHED["yarn"].rope_original_len)
    + "|".join(f"`{kind}` 的 $`s_p`$" for kind in SCALINGS),
)
def rotary_scalings(width: str) -> Rows:
    """By how much each way of scaling slows the pairs of a head of this width, with the usual base."""
    base, length = ModelConfig.rope_base, STRETCHED["yarn"].rope_original_len
    shares = [slowed(base, int(width), config.rotary_scaling) for config in STRETCHED.values()]
    for p, (angle, *each) in enumerate(zip(frequencies(base, int(width)), *shares, strict=True)):
        yield p, f"{length * angle / math.tau:,.2f}", *map(decimal, each)


@table_block(
    "K|G = H / K|Columns of W_qkv|Numbers kept per position|Numbers kept for a full context",
    "K|G = H / K|W_qkv 的列数|每个位置保存的数|整个上下文保存的数",
)
def key_value_heads() -> Rows:
    """The columns of W_qkv and the size of the cache in GPT-2, if it had fewer heads of keys and values."""
    for heads in (12, 4, 1):
        config = replace(PUBLISHED, n_kv_heads=heads)
        attention = SelfAttention(config, config.layer_kinds[0])
        kept = 2 * math.prod(attention.cache_shape) * config.n_layers
        columns = attention.parameters()["w_qkv"].shape[1]
        yield heads, config.n_heads // heads, f"{columns:,}", f"{kept:,}", f"{kept * config.seq_len:,}"
