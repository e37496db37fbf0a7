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
from byhand.model_follows import LayerKind


@dataclass(frozen=True)
class Block:
    """Two sublayers with norms: of what a sublayer reads, of what it adds, of both, or of the sum.

    position  where the norms stand, as `norm_position` says
    parallel  the MLP reads the stream that attention reads
    """

    norm: Norm
    attention: SelfAttention
    mlp: MLP
    position: str
    parallel: bool

    @classmethod
    def of(cls, config: ModelConfig, kind: LayerKind) -> Block:
        """Return the block of this config whose attention is of this kind."""
        attention = SelfAttention(config, kind)
        return cls(norm_of(config), attention, MLP(config), config.norm_position, config.parallel_residual)

    def parameters(self) -> Tree:
        """Return the parameters of the layers inside, in the order in which data meets them with pre-norm."""
        norm = self.norm.parameters()
        behind = [{"ln_1_out": norm}, {"ln_2_out": norm}] if self.position == "both" else [{}, {}]
        return {
            "ln_1": norm, "attn": self.attention.parameters(), **behind[0],
            "ln_2": norm, "mlp": self.mlp.parameters(), **behind[1],
        }  # fmt: skip

    def apply(self, p: Tree, x: Tensor, start: Any = None, kept: Kept | None = None) -> tuple[Tensor, Kept | None]:
        """Return the stream (B, T, C) after this block; `start` and `kept` are attention's."""
        if self.position == "pre" and self.parallel:
            return self._side_by_side(p, x, start, kept)
        a, kept = self.attention.apply(p["attn"], self._read(p, x, "ln_1"), start, kept)
        x = self._added(p, x, a, "ln_1", "x_mid")
        return self._added(p, x, self.mlp.apply(p["mlp"], self._read(p, x, "ln_2")), "ln_2", "x_out"), kept

    def _read(self, p: Tree, x: Tensor, norm: str) -> Tensor:
        """Return what a sublayer reads of the stream."""
        return self.norm.apply(p[norm], x, norm) if self.position in ("pre", "both") else x

    def _added(self, p: Tree, x: Tensor, made: Tensor, norm: str, name: str) -> Tensor:
        """Return the stream with what a sublayer has made of it."""
        if self.position in ("output", "both"):
            norm = norm if self.position == "output" else f"{norm}_out"
            made = self.norm.apply(p[norm], made, norm)
        x = residual(x, made, name=name)
        return self.norm.apply(p[norm], x, norm) if self.position == "post" else x

    def _side_by_side(self, p: Tree, x: Tensor, start: Any, kept: Kept | None) -> tuple[Tensor, Kept | None]:
        """Return x + attn(LN(x)) + mlp(LN'(x))."""
        a, kept = self.attention.apply(p["attn"], self.norm.apply(p["ln_1"], x, "ln_1"), start, kept)
        m = self.mlp.apply(p["mlp"], self.norm.apply(p["ln_2"], x, "ln_2"))
        return residual(residual(x, a, name="x_mid"), m, name="x_out"), kept
