"""What the page asks: which matrices have an adapter."""

import math
from collections.abc import Iterator

from byhand.config import ModelConfig
from byhand.layers.adapter import DOWN, UP
from byhand.model import declared


def adapted(model: ModelConfig) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield each matrix of the first block that has an adapter: name, shape, numbers of the adapter."""
    found = declared(model)
    for name in (n for n in found if n.startswith("blocks.0.") and n + DOWN in found):
        thin = sum(math.prod(found[name + end].shape) for end in (DOWN, UP))
        yield name.removeprefix("blocks.0."), found[name].shape, thin
