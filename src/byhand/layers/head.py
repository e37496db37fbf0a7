"""The LM head: from the stream's vectors to logits."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.config import ModelConfig
from byhand.engine import Tensor
from byhand.equations.linear import linear
from byhand.equations.low_rank import adapted
from byhand.equations.softcap import softcap
from byhand.equations.transpose import transpose
from byhand.layers.adapter import adapter
from byhand.layers.parameter import STD, Parameter, Tree, given, weight, zeros


@dataclass(frozen=True)
class LMHead:
    """A linear layer, then a softcap if one is set; tied, its weight is the token embedding, transposed."""

    config: ModelConfig

    def parameters(self) -> dict[str, Parameter]:
        """Return the weight unless tied, and the bias unless switched off."""
        width, vocab = ("width", self.config.d_model), ("vocab", self.config.vocab_size)
        std = 0.0 if self.config.zero_init else STD
        w = {} if self.config.tied_embeddings else {"w": weight(width, vocab, std=std, group="head")}
        return w | ({"b": zeros(vocab)} if self.config.lm_head_bias else {})

    def apply(self, p: Tree, x: Tensor, table: Tensor) -> Tensor:
        """Return logits (B, T, V) for x (B, T, C); `table` is the token embedding (V, C)."""
        w = transpose(table, name="lm_head.w") if self.config.tied_embeddings else p["w"]
        cap = self.config.logit_softcap
        z = linear(x, w, *given(p, "b"), name="uncapped" if cap else "logits")
        z = adapted(z, x, adapter(self.config, p, "w"))
        return softcap(z, cap=cap, name="logits") if cap else z
