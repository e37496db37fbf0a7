"""The MLP (feed-forward network): widen, apply the activation, narrow, at each position."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.config import ModelConfig
from byhand.engine import Tensor, registry, scope
from byhand.equations.low_rank import adapted_linear
from byhand.layers.adapter import adapter
from byhand.layers.parameter import Parameter, Tree, given, residual_std, weight, zeros


@dataclass(frozen=True)
class MLP:
    """Linear layers around an activation: any equation with this role, or a gate, which takes two inputs."""

    config: ModelConfig

    def parameters(self) -> dict[str, Parameter]:
        """Return weight and bias of each linear layer: two widen with a gate, else one."""
        config = self.config
        width, inner = ("width", config.d_model), ("hidden", config.ff_width)
        found: dict[str, Parameter] = {}
        for name in ("gate", "up") if config.gated else ("fc",):
            found[f"w_{name}"] = weight(width, inner)
            if config.mlp_bias:
                found[f"b_{name}"] = zeros(inner)
        std = 0.0 if config.zero_init else residual_std(config.n_layers)
        found["w_out"] = weight(inner, width, std=std)
        return found | ({"b_out": zeros(width)} if config.mlp_bias else {})

    def apply(self, p: Tree, x: Tensor) -> Tensor:
        """Return what the MLP adds to the stream, (B, T, C)."""
        activation = gate = registry[self.config.activation]
        with scope("mlp"):
            if not self.config.gated:
                pre = self._linear(p, x, "fc", "pre")
                hidden = activation(pre, name="act")
            else:
                opening, up = self._linear(p, x, "gate", "gate"), self._linear(p, x, "up", "up")
                hidden = gate(opening, up, name="act")
            return self._linear(p, hidden, "out", "out")

    def _linear(self, p: Tree, x: Tensor, which: str, name: str) -> Tensor:
        """Apply the linear layer of a weight, with its adapter if it has one."""
        weight = f"w_{which}"
        adapted = adapter(self.config, p, weight)
        return adapted_linear(x, p[weight], *given(p, f"b_{which}"), adapter=adapted, name=name)
