"""A model from another program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from byhand.config import ModelConfig
from byhand.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class Foreign:
    """A model that another program wrote: its config, its parameters in float32, its tokenizer.

    source     the program and the family, such as "GGUF llama"
    tokenizer  () -> it, or None if the files have none; DataError if its kind is unknown
    """

    source: str
    config: ModelConfig
    arrays: Mapping[str, np.ndarray]
    tokenizer: Callable[[], Tokenizer | None] = lambda: None
