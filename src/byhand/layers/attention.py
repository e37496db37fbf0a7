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
from byhand.model_follows import LayerKind


@dataclass(frozen=True)
class SelfAttention:
    """In each head, every position mixes the values of the positions it attends to.

    kind  this layer's window and rotation, which may differ between layers
    """

    config: ModelConfig
    kind: LayerKind

    @property
    def cache_shape(self) -> tuple[int, int]:
        """(K, D): a cache holds K keys and K values of width D for each position."""
        return self.config.kv_heads, self.config.head_width

    def parameters(self) -> dict[str, Parameter]:
        """Return the packed projection to queries, keys and values, the output projection, and the gains of q and k.

        The packed columns are slices of K heads each: H / K of queries, one of keys, one of values.
        """
        config = self.config
        width, head = ("width", config.d_model), config.head_width
        heads, packed = ("heads", config.kv_heads * head), config.n_heads // config.kv_heads + 2
        found = {"w_qkv": weight(width, heads, packed=packed)}
        if config.attention_bias in ("all", "qkv"):
            found["b_qkv"] = zeros(heads, packed=packed)
        std = 0.0 if config.zero_init else residual_std(config.n_layers)
        found["w_proj"] = weight(("heads", config.n_heads * head), width, std=std)
        if config.attention_bias in ("all", "out"):
            found["b_proj"] = zeros(width)
        if config.qk_norm and config.norm_affine:
            axes = {"q_gain": ("head", head), "k_gain": ("head", head)}
            if config.qk_norm_over == "heads":
                axes = {"q_gain": ("heads", config.n_heads * head), "k_gain": ("heads", config.kv_heads * head)}
            found |= {name: ones(axis) for name, axis in axes.items()}
        return found

    def apply(self, p: Tree, x: Tensor, start: Any = None, kept: Kept | None = None) -> tuple[Tensor, Kept | None]:
        """Return what attention adds to the stream, (B, T, C), and `kept` with the new keys and values.

        start  positions before x: for each stream of a cache, (B,); of the whole batch without one, ()
        """
        config = self.config
        names = ("w_qkv", "b_qkv", "w_proj", "b_proj", "q_gain", "k_gain")
        window, base, scaling = self.kind
        turns = {"base": base, "width": config.rotary_width, "pairing": config.rope_pairing}
        if scaling:
            turns["scaling"] = scaling
        before = () if start is None else (start, *(kept or ()))
        made: Any = causal_self_attention(
            x, *(p.get(name) for name in names), *before, n_heads=config.n_heads, n_kv_heads=config.kv_heads,
            causal=config.causal, window=window, qk_eps=config.norm_eps if config.qk_norm else None,
            rotary_settings=None if base is None else turns, **self._others(p), name="attn",
        )  # fmt: skip
        return (made, None) if kept is None else (made[0], made[1:])

    def _others(self, p: Tree) -> dict[str, Any]:
        """Return the less common settings: adapters, a norm over all heads, a divisor of scores."""
        config = self.config
        adapters = tuple(adapter(config, p, name) for name in ("w_qkv", "w_proj"))
        found: dict[str, Any] = {"adapters": adapters} if any(adapters) else {}
        if config.qk_norm and config.qk_norm_over == "heads":
            found["qk_over"] = "heads"
        if config.attention_divisor is not None:
            found["divisor"] = config.attention_divisor
        return found
