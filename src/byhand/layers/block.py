"""The Transformer block: attention, then the MLP, or both in parallel, each added to the residual stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations.residual import residual
from byhand.layers.attention import SelfAttention
from byhand.layers.cache import Kept
from byhand.layers.mlp import MLP
from byhand.layers.norm import Norm, norm_of
from byhand.layers.parameter import Tree
from byhand.model_follows import LayerKind


@dataclass(frozen=True)
class Block:
    """Two sublayers with norms: of a sublayer's input, of its output, of both, or of the sum.

    position  of the norms (`norm_position`)
    parallel  attention and MLP read the same stream
    """

    norm: Norm
    attention: SelfAttention
    mlp: MLP
    position: str
    parallel: bool

    @classmethod
    def of(cls, config: ModelConfig, kind: LayerKind) -> Block:
        """Return this config's block with attention of this kind."""
        attention = SelfAttention(config, kind)
        return cls(norm_of(config), attention, MLP(config), config.norm_position, config.parallel_residual)

    @property
    def pre_norm(self) -> bool:
        """Whether each sublayer reads normalised input and adds its output unchanged."""
        return self.position == "pre"

    def parameters(self) -> Tree:
        """Return the inner layers' parameters, in pre-norm's order of application."""
        norm = self.norm.parameters()
        behind = [{"ln_1_out": norm}, {"ln_2_out": norm}] if self.position == "both" else [{}, {}]
        return {
            "ln_1": norm, "attn": self.attention.parameters(), **behind[0],
            "ln_2": norm, "mlp": self.mlp.parameters(), **behind[1],
        }  # fmt: skip

    def apply(self, p: Tree, x: Tensor, start: Any = None, kept: Kept | None = None) -> tuple[Tensor, Kept | None]:
        """Return the stream (B, T, C) after this block; `start` and `kept` are attention's."""
        if self.pre_norm and self.parallel:
            return self._side_by_side(p, x, start, kept)
        if self.pre_norm:
            h = self.norm.apply(p["ln_1"], x, "ln_1")
            a, kept = self.attention.apply(p["attn"], h, start, kept)
            x = residual(x, a, name="x_mid")
            h = self.norm.apply(p["ln_2"], x, "ln_2")
            return residual(x, self.mlp.apply(p["mlp"], h), name="x_out"), kept
        if self.position != "post":
            return self._behind(p, x, start, kept)
        a, kept = self.attention.apply(p["attn"], x, start, kept)
        x = residual(x, a, name="x_mid")
        x = self.norm.apply(p["ln_1"], x, "ln_1")
        x = residual(x, self.mlp.apply(p["mlp"], x), name="x_out")
        return self.norm.apply(p["ln_2"], x, "ln_2"), kept

    def _behind(self, p: Tree, x: Tensor, start: Any, kept: Kept | None) -> tuple[Tensor, Kept | None]:
        """Return the stream with norms after the sublayers, for `both` also before them."""
        both = self.position == "both"
        first, second = ("ln_1_out", "ln_2_out") if both else ("ln_1", "ln_2")
        read = self.norm.apply(p["ln_1"], x, "ln_1") if both else x
        a, kept = self.attention.apply(p["attn"], read, start, kept)
        x = residual(x, self.norm.apply(p[first], a, first), name="x_mid")
        read = self.norm.apply(p["ln_2"], x, "ln_2") if both else x
        m = self.mlp.apply(p["mlp"], read)
        return residual(x, self.norm.apply(p[second], m, second), name="x_out"), kept

    def _side_by_side(self, p: Tree, x: Tensor, start: Any, kept: Kept | None) -> tuple[Tensor, Kept | None]:
        """Return x + attn(LN(x)) + mlp(LN'(x))."""
        a, kept = self.attention.apply(p["attn"], self.norm.apply(p["ln_1"], x, "ln_1"), start, kept)
        m = self.mlp.apply(p["mlp"], self.norm.apply(p["ln_2"], x, "ln_2"))
        return residual(residual(x, a, name="x_mid"), m, name="x_out"), kept
