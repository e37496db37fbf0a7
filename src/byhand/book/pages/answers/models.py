"""Answers about models: their settings, the sizes of their parameters, the architectures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from byhand.architectures import ARCHITECTURES, GPT2
from byhand.book.pages.answers.registry import ANSWERS, answer
from byhand.config import ModelConfig, OptimConfig
from byhand.errors import ByhandError
from byhand.model import declared, parameter_shapes

PUBLISHED = replace(GPT2, vocab_size=50_257)
"""GPT-2 with the vocabulary that it was published with: 124 million parameters."""
VOCABULARIES = (256, 50_257, 49_152, 151_936, 256)  # bytes, or that of the published tokenizer

ANSWERS |= {"OptimConfig": OptimConfig, "default": ModelConfig(), "gpt2": PUBLISHED, "declared": declared}


@answer
def architectures() -> list[ModelConfig]:
    """Return the default model and the architectures, each with its vocabulary."""
    shapes = [ModelConfig(), *ARCHITECTURES.values()]
    return [replace(config, vocab_size=v) for config, v in zip(shapes, VOCABULARIES, strict=True)]


@answer
def count(config: ModelConfig, names: Iterable[str] = ()) -> int:
    """Return how many numbers the parameters of these names hold, or all parameters."""
    shapes = parameter_shapes(config)
    return sum(math.prod(shapes[name]) for name in [*names] or shapes)


@answer
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
