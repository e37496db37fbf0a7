"""Answers about models: sizes of parameters, what adapters train and keep."""

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from byhand.architectures import GPT2
from byhand.config import ModelConfig, OptimConfig, TrainConfig
from byhand.errors import ByhandError
from byhand.files.run_folder import MODEL
from byhand.model import declared, parameter_shapes
from byhand.runs.contents import BASE, OPTIMIZER, due
from byhand.update_rules import state_size

gpt2 = replace(GPT2, vocab_size=50_257)
"""GPT-2 with the vocabulary that it was published with: 124 million parameters."""
default = ModelConfig()


def count(config: ModelConfig, names: Iterable[str] = ()) -> int:
    """Return how many numbers the parameters of these names hold, or all parameters."""
    shapes = parameter_shapes(config)
    return sum(math.prod(shapes[name]) for name in [*names] or shapes)


def sizes_of(kinds: Iterable[str], *configs: Any) -> list[list[int]]:
    """Return a row for each kind of parameter and one of totals: how many numbers of this kind each model has.

    kinds  patterns of parameters' names; ByhandError unless each parameter is of one kind
    """
    columns = []
    for config in configs:
        sizes = {name: math.prod(shape) for name, shape in parameter_shapes(config).items()}
        found = [sum(n for name, n in sizes.items() if re.fullmatch(kind, name)) for kind in kinds]
        if sum(found) != sum(sizes.values()):
            raise ByhandError(f"some of these parameters are of no kind, or of two: {', '.join(sizes)}")
        columns.append([*found, sum(found)])
    return [list(row) for row in zip(*columns, strict=True)]


def kept(model: ModelConfig) -> tuple[int, int, int, int]:
    """Return how many numbers are trained, kept for it, in a checkpoint, and once for all checkpoints."""
    config = TrainConfig(model=model)
    stored = {name: sum(map(math.prod, arrays.values())) for name, arrays in due(config).items()}
    trained = sum(math.prod(p.shape) for p in declared(model).values() if p.trained)
    moments = state_size(OptimConfig(), declared(model))
    return trained, trained + moments, stored[MODEL] + stored[OPTIMIZER], stored.get(BASE, 0)
