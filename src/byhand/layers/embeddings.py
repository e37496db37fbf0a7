"""The embeddings: a vector for each token, and one for each position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations import add_positional, embedding
from byhand.layers.parameter import Parameter, Tree, weight


@dataclass(frozen=True)
class TokenEmbedding:
    """A table with a row for each token."""

    vocab_size: int
    width: int

    @classmethod
    def of(cls, config: ModelConfig) -> TokenEmbedding:
        """Return the token embedding of this config."""
        return cls(config.vocab_size, config.d_model)

    def parameters(self) -> dict[str, Parameter]:
        """Return the table (V, C)."""
        return {"wte": weight(self.vocab_size, self.width)}

    def apply(self, p: Tree, tokens: Any) -> Tensor:
        """Return the rows of tokens (B, T)."""
        return embedding(p["wte"], tokens, name="tok")


@dataclass(frozen=True)
class PositionEmbedding:
    """A learned table with a row for each position."""

    seq_len: int
    width: int

    @classmethod
    def of(cls, config: ModelConfig) -> PositionEmbedding:
        """Return the position embedding of this config."""
        return cls(config.seq_len, config.d_model)

    def parameters(self) -> dict[str, Parameter]:
        """Return the table (seq_len, C)."""
        return {"wpe": weight(self.seq_len, self.width)}

    def apply(self, p: Tree, x: Tensor, start: Any = None) -> Tensor:
        """Add the rows from `start` on, the number of positions before (None: no cache) to x (B, T, C)."""
        before = () if start is None else (start,)
        return add_positional(x, p["wpe"], *before, name="x")
