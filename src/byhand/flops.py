"""Operations of a training step, from the model's graph and its optimizer; weights of the blocks."""

from __future__ import annotations

from functools import cache
from math import prod

from byhand.config import ModelConfig, OptimConfig
from byhand.engine.graph.operations import products_of
from byhand.model import declared, parameter_shapes
from byhand.step_graph import step_graph
from byhand.update_rules import rule_of


def step_flops(model: ModelConfig, sequences: int, length: int | None = None) -> int:
    """Return the operations of the matrix products in a training step on `sequences` windows of T tokens.

    T is `length`, or seq_len if not given.

    Sums the products of the recorded graph. For the usual blocks they are
    6 B T (L (4 C^2 + 2 C F) + C V) + 12 L B T^2 C: six for each weight and token (two forward, four backward), plus
    attention over all pairs; masked pairs count too, as is usual.
    Source: Kaplan et al. 2020, arXiv:2001.08361, section 2.1
    """
    return sequences * _window_flops(model, length or model.seq_len)


def update_flops(model: ModelConfig, optim: OptimConfig) -> int:
    """Return the operations of the matrix products in an update, such as those of Muon's orthogonalisation."""
    rules = (rule_of(optim, parameter) for parameter in declared(model).values() if parameter.trained)
    return sum(rule.products for rule in rules)


@cache
def _window_flops(config: ModelConfig, length: int) -> int:
    return sum(sum(products_of(node)) for node in step_graph(config, (1, length)).nodes)


@cache
def block_weights(model: ModelConfig) -> int:
    """Return the number of weights in the matrices of the blocks."""
    shapes = parameter_shapes(model).items()
    return sum(prod(shape) for name, shape in shapes if name.startswith("blocks.") and len(shape) == 2)
