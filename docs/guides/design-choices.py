"""What the page asks: new models' weights, stream, loss and gradients."""

import math
from dataclasses import replace
from functools import cache

import numpy as np

from byhand import host
from byhand.config import Group, ModelConfig, OptimConfig
from byhand.engine import no_grad
from byhand.engine.equation import registry
from byhand.equations.attention_scores import attention_scores
from byhand.equations.linear import linear
from byhand.equations.softmax import softmax
from byhand.layers.parameter import STD
from byhand.model import TinyGPT, declared
from byhand.tracing.trace import Trace

SMALL = ModelConfig(seq_len=32, n_layers=2)
MUON = OptimConfig(optimizer="muon")


def layer_spreads(*widths: int) -> list[float]:
    """Return the spread of a linear layer's results for inputs of variance 1, drawn, for each width."""
    rng, found = np.random.default_rng(1), []
    for width in widths:
        w = STD * rng.standard_normal((width, 64))
        found.append(float(linear.forward(rng.standard_normal((256, width)), w)[0].std()))
    return found


@cache
def stream_spread(depth: int, scaled: bool) -> float:
    """Return the spread of the stream that leaves the last block of a new model."""
    model = drawn(replace(SMALL, n_layers=depth), scaled=scaled)
    with no_grad():
        values = Trace.of(lambda: model.forward_logits(_text()[0])).values
    return float(values[f"blocks.{depth - 1}.x_out"].std())


@cache
def first_loss(std: float) -> tuple[float, int, int]:
    """Return a new model's loss, the number of arrays with a gradient that is not all zeros, and of all arrays."""
    model = drawn(SMALL, std / STD)
    loss = model.loss(*_text())
    loss.backward()
    gradients = [np.asarray(p.grad) for p in model.parameters().values()]
    return loss.item(), sum(bool(g.any()) for g in gradients), len(gradients)


@cache
def block_gradients(position: str, depth: int) -> tuple[float, float]:
    """Return the norms of w_fc's gradients in the first and the last block; weights have variance 1/C."""
    config = replace(SMALL, n_layers=depth, norm_position=position)
    model = drawn(config, 1 / (STD * math.sqrt(SMALL.d_model)), scaled=False)
    model.loss(*_text()).backward()
    first, last = (np.asarray(model.parameters()[f"blocks.{i}.mlp.w_fc"].grad) for i in (0, depth - 1))
    return float(np.linalg.norm(first)), float(np.linalg.norm(last))


@cache
def score_statistics(width: int) -> tuple[tuple[float, ...], ...]:
    """Return (spread, mean largest weight, mean p (1 - p)) of scores over eight keys, without and with the scale."""
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((1000, 1, 1, width)), rng.standard_normal((1000, 1, 8, width))
    scaled = attention_scores.forward(q, k)[0]
    found = []
    for scores in (scaled * math.sqrt(width), scaled):
        p = softmax.forward(scores)[0]
        found.append((float(scores.std()), float(p.max(axis=-1).mean()), float((p * (1 - p)).mean())))
    return tuple(found)


def updated_by_muon(group: Group) -> tuple[list[str], int, str, float]:
    """Return a group of the default model's parameters: short names, numbers, update rule, learning rate."""
    members = {name: p for name, p in declared(ModelConfig()).items() if p.group == group}
    short = dict.fromkeys(n.rpartition(".")[2] if "blocks" in n else n for n in members)
    numbers = sum(math.prod(p.shape) for p in members.values())
    return list(short), numbers, registry[MUON.rule_of(group)].title.removesuffix(" update"), MUON.rate_of(group)


def drawn(config: ModelConfig, factor: float = 1.0, scaled: bool = True) -> TinyGPT:
    """Return a model whose initial numbers have `factor` times their spread; all weights the same if not `scaled`."""
    arrays = {}
    for name, p in declared(config).items():
        std = p.std if scaled or not p.std else STD
        arrays[name] = host.normal(name, p.shape, p.mean, factor * std, 1, "float64")
    return TinyGPT(config, arrays=arrays, dtype="float64")


def _text() -> tuple[np.ndarray, np.ndarray]:
    """Return random tokens and their targets, (2, T) each."""
    tokens = np.random.default_rng(0).integers(0, SMALL.vocab_size, (2, SMALL.seq_len + 1))
    return tokens[:, :-1], tokens[:, 1:]
