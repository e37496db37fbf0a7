"""Self-attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations.causal_self_attention import causal_self_attention
from byhand.layers.adapter import adapter
from byhand.layers.cache import Kept
from byhand.layers.parameter import Parameter, Tree, ones, residual_std, weight, zeros


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

        The packed columns are slices of K heads each: H / K of queries, one of keys, one of values.
        """
        config = self.config
        width, head = ("width", config.d_model), config.head_width
        heads, packed = ("heads", config.kv_heads * head), config.n_heads // config.kv_heads + 2
        found = {"w_qkv": weight(width, heads, packed=packed)}
        if config.attention_bias != "none":
            found["b_qkv"] = zeros(heads, packed=packed)
        std = 0.0 if config.zero_init else residual_std(config.n_layers)
        found["w_proj"] = weight(("heads", config.n_heads * head), width, std=std)
        if config.attention_bias == "all":
            found["b_proj"] = zeros(width)
        if config.qk_norm and config.norm_affine:
            found |= {"q_gain": ones(("head", head)), "k_gain": ones(("head", head))}
        return found

    def apply(self, p: Tree, x: Tensor, start: Any = None, kept: Kept | None = None) -> tuple[Tensor, Kept | None]:
        """Return what attention adds to the stream, (B, T, C), and `kept` with the new keys and values.

        start  positions before x: for each stream of a cache, (B,); of the whole batch without one, ()
        """
        config = self.config
        names = ("w_qkv", "b_qkv", "w_proj", "b_proj", "q_gain", "k_gain")
        turns: dict[str, Any] = {
            "base": config.rope_base,
            "width": config.rotary_width,
            "pairing": config.rope_pairing,
        }
        if scaling := config.rotary_scaling:
            turns["scaling"] = scaling
        before = () if start is None else (start, *(kept or ()))
        made: Any = causal_self_attention(
            x, *(p.get(name) for name in names), *before, n_heads=config.n_heads, n_kv_heads=config.kv_heads,
            causal=config.causal, window=config.visible, qk_eps=config.norm_eps if config.qk_norm else None,
            rotary_settings=turns if config.positions == "rotary" else None,
            **self._adapters(p), name="attn",
        )  # fmt: skip
        return (made, None) if kept is None else (made[0], made[1:])

    def _adapters(self, p: Tree) -> dict[str, Any]:
        """Return the adapters of both projections, if any."""
        found = tuple(adapter(self.config, p, name) for name in ("w_qkv", "w_proj"))
        return {"adapters": found} if any(found) else {}
