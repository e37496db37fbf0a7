"""The LM head: from the stream's vectors to a logit for each token."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations.linear import linear
from byhand.equations.transpose import transpose
from byhand.layers.parameter import Parameter, Tree, weight, zeros


@dataclass(frozen=True)
class LMHead:
    """A linear layer; tied, its weight is the token embedding, transposed."""

    config: ModelConfig

    def parameters(self) -> dict[str, Parameter]:
        """Return the weight unless it is tied, and the bias if there is one."""
        width, vocab = ("width", self.config.d_model), ("vocab", self.config.vocab_size)
        w = {} if self.config.tied_embeddings else {"w": weight(width, vocab, group="head")}
        return w | ({"b": zeros(vocab)} if self.config.lm_head_bias else {})

    def apply(self, p: Tree, x: Tensor, table: Tensor) -> Tensor:
        """Return logits (B, T, V) for x (B, T, C); `table` is the token embedding (V, C)."""
        w = transpose(table) if self.config.tied_embeddings else p["w"]
        return linear(x, w, *([p["b"]] if self.config.lm_head_bias else []), name="logits")
