"""The weights of a model's blocks, and the operations of a step, from the model's graph and its optimizer."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from byhand.config import ModelConfig, OptimConfig
from byhand.engine.graph.outline import Outline
from byhand.engine.graph.record import record
from byhand.equations.orthogonalise import products
from byhand.model import TinyGPT, declared, parameter_shapes
from byhand.optim import by_muon


def step_flops(model: ModelConfig, sequences: int) -> int:
    """Return the operations of the matrix products in a training step on `sequences` windows of T tokens.

    It sums the products of the recorded graph. For the usual blocks they are
    6 B T (L (4 C^2 + 2 C F) + C V) + 12 L B T^2 C: six for each weight and token (two forward, four back), and the
    attention over all pairs; masked pairs count too, as is usual.
    Source: Kaplan et al. 2020, arXiv:2001.08361, section 2.1
    """
    return sequences * _window_flops(model)


def update_flops(model: ModelConfig, optim: OptimConfig) -> int:
    """Return the operations of the matrix products in an update: those of Muon's orthogonalisation."""
    shapes = parameter_shapes(model)
    by_name = by_muon(optim, declared(model)).items()
    return sum(products((parts, shapes[n][0], shapes[n][1] // parts))[0] for n, parts in by_name)


@cache
def _window_flops(config: ModelConfig) -> int:
    arrays = {name: Outline(shape, np.float32) for name, shape in parameter_shapes(config).items()}
    tokens = np.zeros((1, config.seq_len), np.int64)
    graph = record(TinyGPT(config, arrays=arrays).loss_of, tokens=tokens, targets=tokens)
    products = ((n.equation.products, n) for n in graph.nodes)
    return sum(sum(cost(*(t.shape for t in n.inputs), **n.static)) for cost, n in products if cost)


@cache
def block_weights(model: ModelConfig) -> int:
    """Return the number of weights in the matrices of the blocks."""
    shapes = parameter_shapes(model).items()
    return sum(prod(shape) for name, shape in shapes if name.startswith("blocks.") and len(shape) == 2)
