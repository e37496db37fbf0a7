"""The Transformer block: attention, then the MLP or both side by side, each added to the residual stream."""

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


@dataclass(frozen=True)
class Block:
    """Two sublayers with a norm each: before the sublayer, or after the sum.

    parallel  the MLP reads the stream that attention reads
    """

    norm: Norm
    attention: SelfAttention
    mlp: MLP
    pre_norm: bool
    parallel: bool

    @classmethod
    def of(cls, config: ModelConfig) -> Block:
        """Return the block of this config."""
        pre_norm = config.norm_position == "pre"
        return cls(norm_of(config), SelfAttention(config), MLP(config), pre_norm, config.parallel_residual)

    def parameters(self) -> Tree:
        """Return the parameters of the layers inside, in the order in which data meets them with pre-norm."""
        return {
            "ln_1": self.norm.parameters(),
            "attn": self.attention.parameters(),
            "ln_2": self.norm.parameters(),
            "mlp": self.mlp.parameters(),
        }

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
        a, kept = self.attention.apply(p["attn"], x, start, kept)
        x = residual(x, a, name="x_mid")
        x = self.norm.apply(p["ln_1"], x, "ln_1")
        x = residual(x, self.mlp.apply(p["mlp"], x), name="x_out")
        return self.norm.apply(p["ln_2"], x, "ln_2"), kept

    def _side_by_side(self, p: Tree, x: Tensor, start: Any, kept: Kept | None) -> tuple[Tensor, Kept | None]:
        """Return x + attn(LN(x)) + mlp(LN'(x))."""
        a, kept = self.attention.apply(p["attn"], self.norm.apply(p["ln_1"], x, "ln_1"), start, kept)
        m = self.mlp.apply(p["mlp"], self.norm.apply(p["ln_2"], x, "ln_2"))
        return residual(residual(x, a, name="x_mid"), m, name="x_out"), kept
