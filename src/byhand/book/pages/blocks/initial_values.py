"""Generated numbers about a new model: the spread of its weights and of its stream, its loss and gradients."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from byhand import host
from byhand.book.pages.blocks.markdown import Rows, table_block
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.engine import no_grad
from byhand.equations.linear import linear
from byhand.layers.parameter import STD, residual_std
from byhand.model import TinyGPT, declared
from byhand.tracing.trace import Trace

SMALL = ModelConfig(seq_len=32, n_layers=2)
DEPTHS, DEPTHS_OF_GRADIENTS = (1, 4, 12), (2, 6, 12)


_DEPTHS, _DEPTHS_OF_GRADIENTS = (
    "|".join(f"L = {depth}" for depth in depths) for depths in (DEPTHS, DEPTHS_OF_GRADIENTS)
)


@table_block(f"Standard deviation|{_DEPTHS}", f"标准差|{_DEPTHS}")
def initial() -> Rows:
    """The standard deviation of each kind of initial number, at three depths."""
    yield Words("tables, `w_qkv`, `w_fc`, head", "嵌入表、`w_qkv`、`w_fc`、语言模型头"), *[f"{STD:g}"] * len(DEPTHS)
    yield Words("`w_proj`, `w_out`", "`w_proj`、`w_out`"), *(f"{residual_std(n):.6f}" for n in DEPTHS)
    yield Words("biases (mean 0)", "偏置（均值 0）"), *["0"] * len(DEPTHS)
    yield Words("gains of LayerNorm (mean 1)", "层归一化的增益（均值 1）"), *["0"] * len(DEPTHS)


@table_block(f"C|{STD:g} √C|Standard deviation, drawn", f"C|{STD:g} √C|抽样所得标准差")
def layer_spread() -> Rows:
    """The spread of a linear layer's results for inputs of variance 1: by the formula, and drawn."""
    rng = np.random.default_rng(1)
    for width in (64, 256, 768, 2500):
        w = STD * rng.standard_normal((width, 64))
        y = linear.forward(rng.standard_normal((256, width)), w)[0]
        yield width, f"{STD * math.sqrt(width):.3f}", f"{y.std():.3f}"


@table_block(f"Standard deviation|{_DEPTHS}", f"标准差|{_DEPTHS}")
def stream_spread() -> Rows:
    """The spread of the residual stream after the last block of a new model, with and without the smaller weights."""
    divided = Words("`w_proj`, `w_out` divided by √(2L)", "`w_proj`、`w_out` 除以 √(2L)")
    for words, scaled in ((divided, True), (Words("not divided", "不除"), False)):
        yield words, *(f"{stream(depth, scaled):.4f}" for depth in DEPTHS)


@cache
def stream(depth: int, scaled: bool) -> float:
    """Return the standard deviation of the stream that leaves the last block of a new model."""
    model = drawn(replace(SMALL, n_layers=depth), scaled=scaled)
    with no_grad():
        values = Trace.of(lambda: model.forward_logits(_text()[0])).values
    return float(values[f"blocks.{depth - 1}.x_out"].std())


@table_block("Standard deviation|First loss|Arrays with a gradient", "标准差|最初的损失|梯度不全为零的数组")
def initial_losses() -> Rows:
    """The first loss of a small model for several spreads of its initial numbers, and how many arrays can learn."""
    for std in (0.0, 0.01, STD, 0.1, 0.5, 1.0):
        loss, zero, count = first_loss(std)
        yield f"{std:g}", f"{loss:.3f}", f"{count - zero} / {count}"


@cache
def first_loss(std: float) -> tuple[float, int, int]:
    """Return a new model's loss, the number of arrays whose gradient is all zeros, and the number of arrays."""
    model = drawn(SMALL, std / STD)
    loss = model.loss(*_text())
    loss.backward()
    gradients = [np.asarray(p.grad) for p in model.parameters().values()]
    return loss.item(), sum(not g.any() for g in gradients), len(gradients)


@table_block(f"|Gradient of `w_fc`|{_DEPTHS_OF_GRADIENTS}", f"|`w_fc` 的梯度|{_DEPTHS_OF_GRADIENTS}")
def norm_gradients() -> Rows:
    """The gradient's norm in the first and in the last block of a new model, pre-norm and post-norm."""
    for position, name in (("pre", Words("pre-norm", "前置归一化")), ("post", Words("post-norm", "后置归一化"))):
        first, last = zip(*(block_gradients(position, depth) for depth in DEPTHS_OF_GRADIENTS), strict=True)
        for words, norms in ((Words("first block", "第一个块"), first), (Words("last block", "最后一个块"), last)):
            yield name, words, *(f"{norm:.3f}" for norm in norms)


@cache
def block_gradients(position: str, depth: int) -> tuple[float, float]:
    """Return the norms of w_fc's gradients in the first and the last block; weights have variance 1/C."""
    config = replace(SMALL, n_layers=depth, norm_position=position)
    model = drawn(config, 1 / (STD * math.sqrt(SMALL.d_model)), scaled=False)
    model.loss(*_text()).backward()
    first, last = (np.asarray(model.parameters()[f"blocks.{i}.mlp.w_fc"].grad) for i in (0, depth - 1))
    return float(np.linalg.norm(first)), float(np.linalg.norm(last))


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
