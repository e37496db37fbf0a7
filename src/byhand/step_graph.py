"""The graph of a training step, recorded by shape: the source of operations, memory and plans."""

from __future__ import annotations

import numpy as np

from byhand.config import ModelConfig
from byhand.engine.graph.outline import Outline
from byhand.engine.graph.record import Graph, live_bytes, record
from byhand.model import TinyGPT, parameter_shapes


def outlined(config: ModelConfig, dtype: str = "float32") -> TinyGPT:
    """Return a model whose parameters are outlines."""
    return TinyGPT(config, arrays={name: Outline(shape, dtype) for name, shape in parameter_shapes(config).items()})


def step_graph(config: ModelConfig, shape: tuple[int, int], dtype: str = "float32") -> Graph:
    """Return the graph of the loss of tokens (B, T)."""
    tokens = np.zeros(shape, np.int64)
    return record(outlined(config, dtype).loss_of, tokens=tokens, targets=tokens)


def evaluation_bytes(config: ModelConfig, shape: tuple[int, int], dtype: str = "float32") -> int:
    """Return the peak bytes of arrays while computing the loss of tokens (B, T), equation by equation."""
    tokens = np.zeros(shape, np.int64)
    return live_bytes(outlined(config, dtype).loss_of, tokens=tokens, targets=tokens)
