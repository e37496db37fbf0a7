"""Self-attention, and the key-value cache that it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations.causal_self_attention import causal_self_attention
from byhand.layers.parameter import Parameter, Tree, ones, residual_std, weight, zeros

Extend = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # new keys and values -> all keys and values


class Cache(Protocol):
    """Keys and values of earlier positions, for each layer in the shape of its attention (`cache_shape`).

    length  number of positions: an integer, or an integer scalar array, so that one trace serves all positions
    """

    @property
    def length(self) -> Any:
        """The number of positions."""
        ...

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store this layer's new keys and values (B, H, T, D); return all of them (B, H, S, D)."""
        ...

    def advance(self, n: int) -> None:
        """Count n more positions, after every layer has stored them."""
        ...


@dataclass(frozen=True)
class SelfAttention:
    """In each head, every position mixes the values of the positions that it attends to."""

    config: ModelConfig

    @property
    def cache_shape(self) -> tuple[int, int]:
        """(K, D): a cache keeps K keys and K values of width D for each position."""
        return self.config.kv_heads, self.config.head_width

    def parameters(self) -> dict[str, Parameter]:
        """Return the packed projection to queries, keys and values, the output projection, and the gains of q and k.

        The packed columns are parts of K heads each: H / K of queries, one of keys, one of values.
        """
        config = self.config
        width, head = ("width", config.d_model), config.head_width
        heads, parts = ("heads", config.kv_heads * head), config.n_heads // config.kv_heads + 2
        found = {"w_qkv": weight(width, heads, parts=parts)}
        if config.attention_bias != "none":
            found["b_qkv"] = zeros(heads, parts=parts)
        std = 0.0 if config.zero_init else residual_std(config.n_layers)
        found["w_proj"] = weight(("heads", config.n_heads * head), width, std=std)
        if config.attention_bias == "all":
            found["b_proj"] = zeros(width)
        if config.qk_norm and config.norm_affine:
            found |= {"q_gain": ones(("head", head)), "k_gain": ones(("head", head))}
        return found

    def apply(self, p: Tree, x: Tensor, start: Any = None, extend: Extend | None = None) -> Tensor:
        """Return what attention adds to the stream, (B, T, C); `extend` prepends the positions of a cache."""
        config = self.config
        names = ("w_qkv", "b_qkv", "w_proj", "b_proj", *(("q_gain", "k_gain") if "q_gain" in p else ()))
        turns = {"base": config.rope_base, "width": config.rotary_width, "pairing": config.rope_pairing}
        return causal_self_attention(
            x, *(p.get(name) for name in names), n_heads=config.n_heads, n_kv_heads=config.kv_heads,
            causal=config.causal, window=config.visible, qk_eps=config.norm_eps if config.qk_norm else None,
            rotary_settings=turns if config.positions == "rotary" else None, start=start, extend=extend, name="attn",
        )  # fmt: skip
