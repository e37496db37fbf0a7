"""Self-attention, and what it asks of a cache of keys and values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations import causal_self_attention
from byhand.layers.parameter import Parameter, Tree, residual_std, weight, zeros

Extend = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # new keys and values to all of them


class Cache(Protocol):
    """Keys and values of earlier positions, kept for each layer in the shape that its attention has (`cache_shape`).

    length  how many positions it holds: an integer, or an integer scalar array. It is data: what is traced or
            compiled for one position serves all
    """

    @property
    def length(self) -> Any:
        """The number of positions."""
        ...

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store this layer's new keys and values (B, H, T, D); return all of them (B, H, S, D)."""
        ...

    def advance(self, n: int) -> None:
        """Count n more positions, once every layer has stored them."""
        ...


@dataclass(frozen=True)
class SelfAttention:
    """Every position mixes the values of the positions that it attends to, in each head for itself."""

    width: int
    n_heads: int
    causal: bool
    out_std: float

    @classmethod
    def of(cls, config: ModelConfig) -> SelfAttention:
        """Return the attention of this config."""
        return cls(config.d_model, config.n_heads, config.causal, residual_std(config.n_layers))

    @property
    def cache_shape(self) -> tuple[int, int]:
        """The heads H and the width D of the keys, and of the values, that a cache keeps for each position."""
        return self.n_heads, self.width // self.n_heads

    def parameters(self) -> dict[str, Parameter]:
        """Return the packed projection to queries, keys and values, and the output projection."""
        c = self.width
        return {
            "w_qkv": weight(c, 3 * c),
            "b_qkv": zeros(3 * c),
            "w_proj": weight(c, c, std=self.out_std),
            "b_proj": zeros(c),
        }

    def apply(self, p: Tree, x: Tensor, extend: Extend | None = None) -> Tensor:
        """Return what attention adds to the stream, (B, T, C); `extend` puts a cache's positions in front."""
        weights = (p["w_qkv"], p["b_qkv"], p["w_proj"], p["b_proj"])
        return causal_self_attention(
            x, *weights, n_heads=self.n_heads, causal=self.causal, extend=extend, name="attn"
        )
