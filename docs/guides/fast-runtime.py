"""What the page asks: the groups of a small model's training step."""

import numpy as np

from byhand.config import ModelConfig
from byhand.engine.graph.record import record
from byhand.model import TinyGPT
from byhand.runtimes.loops.lower.fusion import groups_of, rules_of
from byhand.runtimes.loops.pattern.rules import Group


def fused_groups() -> list[Group]:
    """Return the groups of the example model's training step, in the order in which they run forward."""
    model = TinyGPT(ModelConfig(vocab_size=4, seq_len=3, d_model=4, n_layers=1, n_heads=2))
    graph = record(model.loss_of, tokens=np.array([[2, 1, 3]]), targets=np.array([[1, 3, 0]]))
    return groups_of(graph, rules_of("train"))
