"""Self-attention, and the key-value cache that it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations.causal_self_attention import causal_self_attention
from byhand.layers.parameter import Parameter, Tree, residual_std, weight, zeros

Extend = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # new keys and values -> all keys and values


class Cache(Protocol):
    """Keys and values of earlier positions, for each layer in the shape of its attention (`cache_shape`).

    length  number of positions: an integer, or an integer scalar array. It is data: one trace serves all positions
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
        """(H, D): a cache keeps H keys and H values of width D for each position."""
        return self.config.n_heads, self.config.head_width

    def parameters(self) -> dict[str, Parameter]:
        """Return the packed projection to queries, keys and values, and the output projection."""
        width, heads = ("width", self.config.d_model), ("heads", self.config.d_model)
        return {
            "w_qkv": weight(width, heads, parts=3),
            "b_qkv": zeros(heads, parts=3),
            "w_proj": weight(heads, width, std=residual_std(self.config.n_layers)),
            "b_proj": zeros(width),
        }

    def apply(self, p: Tree, x: Tensor, extend: Extend | None = None) -> Tensor:
        """Return what attention adds to the stream, (B, T, C); `extend` prepends the positions of a cache."""
        weights = (p["w_qkv"], p["b_qkv"], p["w_proj"], p["b_proj"])
        heads, causal = self.config.n_heads, self.config.causal
        return causal_self_attention(x, *weights, n_heads=heads, causal=causal, extend=extend, name="attn")
