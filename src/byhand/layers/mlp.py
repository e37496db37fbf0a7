"""The MLP (feed-forward network): widen, apply the activation, narrow; every position for itself."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.config import ModelConfig
from byhand.engine import Tensor, registry, scope
from byhand.equations import linear
from byhand.layers.parameter import Parameter, Tree, residual_std, weight, zeros


@dataclass(frozen=True)
class MLP:
    """Two linear layers around an activation: any equation that is registered with this role."""

    width: int
    inner: int
    activation: str
    out_std: float

    @classmethod
    def of(cls, config: ModelConfig) -> MLP:
        """Return the MLP of this config."""
        return cls(config.d_model, config.ff_width, config.activation, residual_std(config.n_layers))

    def parameters(self) -> dict[str, Parameter]:
        """Return weight and bias of both linear layers."""
        return {
            "w_fc": weight(self.width, self.inner),
            "b_fc": zeros(self.inner),
            "w_out": weight(self.inner, self.width, std=self.out_std),
            "b_out": zeros(self.width),
        }

    def apply(self, p: Tree, x: Tensor) -> Tensor:
        """Return what the MLP adds to the stream, (B, T, C)."""
        activation = registry[self.activation]
        with scope("mlp"):
            pre = linear(x, p["w_fc"], p["b_fc"], name="pre")
            return linear(activation(pre, name="act"), p["w_out"], p["b_out"], name="out")
