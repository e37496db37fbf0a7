"""The MLP (feed-forward network): widen, apply the activation, narrow, at each position."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.config import ModelConfig
from byhand.engine import Tensor, registry, scope
from byhand.equations.linear import linear
from byhand.equations.low_rank import Adapter, adapted
from byhand.layers.adapter import adapter
from byhand.layers.parameter import Parameter, Tree, given, residual_std, weight, zeros


@dataclass(frozen=True)
class MLP:
    """Linear layers around an activation: any equation with this role, or a gate, which takes two inputs."""

    config: ModelConfig

    def parameters(self) -> dict[str, Parameter]:
        """Return weight and bias of each linear layer: with a gate two layers widen, else one."""
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
                pre = linear(x, p["w_fc"], *given(p, "b_fc"), name="pre")
                pre = adapted(pre, x, self._of(p, "w_fc"))
                hidden = activation(pre, name="act")
            else:
                opening = linear(x, p["w_gate"], *given(p, "b_gate"), name="gate")
                opening = adapted(opening, x, self._of(p, "w_gate"))
                up = linear(x, p["w_up"], *given(p, "b_up"), name="up")
                up = adapted(up, x, self._of(p, "w_up"))
                hidden = gate(opening, up, name="act")
            out = linear(hidden, p["w_out"], *given(p, "b_out"), name="out")
            return adapted(out, hidden, self._of(p, "w_out"))

    def _of(self, p: Tree, weight: str) -> Adapter | None:
        return adapter(self.config, p, weight)
