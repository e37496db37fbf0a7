"""A model as it comes from another program, and the memory that it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import DataError
from byhand.memory import physical
from byhand.model import parameter_shapes
from byhand.tokenizers.tokenizer import Tokenizer

COPIES = 3  # of the parameters in float32 while a model is read and saved


@dataclass(frozen=True)
class Foreign:
    """A model that another program wrote: its config, its parameters in float32, its tokenizer.

    source     the program and the family, as in "GGUF llama"
    tokenizer  reads it: None if the files have none, DataError if it is of an unknown kind
    """

    source: str
    config: ModelConfig
    arrays: Mapping[str, np.ndarray]
    tokenizer: Callable[[], Tokenizer | None] = lambda: None


def require_room(config: ModelConfig) -> None:
    """Raise DataError if this machine's memory cannot take a model while it is read and saved."""
    need = COPIES * 4 * sum(map(math.prod, parameter_shapes(config).values()))
    if (have := physical()) is not None and need > have:
        raise DataError(
            f"reading this model takes {need / 1e9:,.1f} GB, but the machine has {have / 1e9:,.1f} GB of memory. "
            f"Use a larger one."
        )
