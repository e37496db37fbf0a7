"""Answers about adapters: how many numbers they have, and what training and checkpoints keep."""

from __future__ import annotations

import math
from collections.abc import Iterator

from byhand.book.pages.answers.registry import answer
from byhand.config import ModelConfig, OptimConfig, TrainConfig
from byhand.files.run_folder import MODEL
from byhand.layers.adapter import DOWN, UP
from byhand.model import declared
from byhand.runs.contents import BASE, OPTIMIZER, due
from byhand.update_rules import state_size


@answer
def adapted(model: ModelConfig) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield each matrix of the first block that has an adapter: name, shape, numbers of the adapter."""
    found = declared(model)
    for name in (n for n in found if n.startswith("blocks.0.") and n + DOWN in found):
        thin = sum(math.prod(found[name + end].shape) for end in (DOWN, UP))
        yield name.removeprefix("blocks.0."), found[name].shape, thin


@answer
def kept(model: ModelConfig) -> tuple[int, int, int, int]:
    """Return how many numbers are trained, kept for it, in a checkpoint, and once for all checkpoints."""
    config = TrainConfig(model=model)
    stored = {name: sum(map(math.prod, arrays.values())) for name, arrays in due(config).items()}
    trained = sum(math.prod(p.shape) for p in declared(model).values() if p.trained)
    moments = state_size(OptimConfig(), declared(model))
    return trained, trained + moments, stored[MODEL] + stored[OPTIMIZER], stored.get(BASE, 0)
