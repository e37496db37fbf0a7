"""Embeddings: a vector for each token, and one for each position."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations.add_positional import add_positional
from byhand.equations.embedding import embedding
from byhand.layers.parameter import Parameter, Tree, weight


@dataclass(frozen=True)
class TokenEmbedding:
    """A table with a row for each token."""

    config: ModelConfig

    def parameters(self) -> dict[str, Parameter]:
        """Return the table (V, C)."""
        return {"wte": weight(("vocab", self.config.vocab_size), ("width", self.config.d_model), group="embeddings")}

    def apply(self, p: Tree, tokens: Any) -> Tensor:
        """Return the rows of tokens (B, T), multiplied by sqrt(C) with `scaled_embeddings`."""
        scale = {"scale": math.sqrt(self.config.d_model)} if self.config.scaled_embeddings else {}
        return embedding(p["wte"], tokens, **scale, name="tok")


@dataclass(frozen=True)
class PositionEmbedding:
    """A learned table with a row for each position."""

    config: ModelConfig

    def parameters(self) -> dict[str, Parameter]:
        """Return the table (seq_len, C)."""
        return {"wpe": weight(("positions", self.config.seq_len), ("width", self.config.d_model), group="embeddings")}

    def apply(self, p: Tree, x: Tensor, start: Any = None) -> Tensor:
        """Add rows start, start + 1, ... to x (B, T, C); start is each stream's cache length, None without one."""
        before = () if start is None else (start,)
        return add_positional(x, p["wpe"], *before, name="x")
