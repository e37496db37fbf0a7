"""The LM head: from the stream's vectors to a logit for each token."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations import linear, transpose
from byhand.layers.parameter import Parameter, Tree, weight, zeros


@dataclass(frozen=True)
class LMHead:
    """A linear layer; tied, its weight is the token embedding, transposed."""

    width: int
    vocab_size: int
    bias: bool
    tied: bool

    @classmethod
    def of(cls, config: ModelConfig) -> LMHead:
        """Return the head of this config."""
        return cls(config.d_model, config.vocab_size, config.lm_head_bias, config.tied_embeddings)

    def parameters(self) -> dict[str, Parameter]:
        """Return the weight unless it is tied, and the bias if there is one."""
        w = {} if self.tied else {"w": weight(self.width, self.vocab_size)}
        return w | ({"b": zeros(self.vocab_size)} if self.bias else {})

    def apply(self, p: Tree, x: Tensor, table: Tensor) -> Tensor:
        """Return logits (B, T, V) for x (B, T, C); `table` is the token embedding (V, C)."""
        w = transpose(table) if self.tied else p["w"]
        return linear(x, w, *([p["b"]] if self.bias else []), name="logits")
