"""The MLP (feed-forward network): widen, apply the activation, narrow, at each position."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.config import ModelConfig
from byhand.engine import Tensor, registry, scope
from byhand.equations.linear import linear
from byhand.layers.parameter import Parameter, Tree, residual_std, weight, zeros


@dataclass(frozen=True)
class MLP:
    """Two linear layers around an activation: any equation that is registered with this role."""

    config: ModelConfig

    def parameters(self) -> dict[str, Parameter]:
        """Return weight and bias of both linear layers."""
        width, inner = ("width", self.config.d_model), ("hidden", self.config.ff_width)
        return {
            "w_fc": weight(width, inner),
            "b_fc": zeros(inner),
            "w_out": weight(inner, width, std=residual_std(self.config.n_layers)),
            "b_out": zeros(width),
        }

    def apply(self, p: Tree, x: Tensor) -> Tensor:
        """Return what the MLP adds to the stream, (B, T, C)."""
        activation = registry[self.config.activation]
        with scope("mlp"):
            pre = linear(x, p["w_fc"], p["b_fc"], name="pre")
            return linear(activation(pre, name="act"), p["w_out"], p["b_out"], name="out")
