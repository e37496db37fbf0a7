"""Generated numbers behind design choices: sizes, variances, gradients, and what happens otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from byhand import host
from byhand.book.lessons.examples import paper_gpt_4
from byhand.book.lessons.examples.paper_gpt import BYTES, model_of
from byhand.book.numbers.closed_form import array
from byhand.book.pages.blocks.devices import GPT2, ODD
from byhand.book.pages.blocks.markdown import block, bmatrix, display_lines, table
from byhand.book.words.language import Words
from byhand.config import ModelConfig, OptimConfig
from byhand.engine import no_grad
from byhand.equations.attention_scores import attention_scores
from byhand.equations.gelu import gelu
from byhand.equations.linear import linear
from byhand.equations.relu import relu
from byhand.equations.softmax import softmax
from byhand.layers.parameter import STD, residual_std
from byhand.model import TinyGPT, declared, matrices, parameter_shapes
from byhand.tracing.trace import Trace

SMALL = ModelConfig(seq_len=32, n_layers=2)
PUBLISHED = replace(GPT2, vocab_size=ODD)  # GPT-2 as published: 124 million parameters
DEPTHS = (1, 4, 12)


@block
def in_bytes(page: Path, lang: str) -> str:
    """Short texts as characters and as bytes, the tokens of the default vocabulary."""
    rows = [
        (f"`{text}`", len(text), len(text.encode()), f"`{list(text.encode())}`")
        for text in ("to be", "naïve", "你好", "🙂")
    ]
    return table(Words("Text|Characters|Bytes|Tokens", "文本|字符数|字节数|词元"), rows, lang)


@block
def numbers_by_kind(page: Path, lang: str) -> str:
    """How many numbers each kind of parameter holds, in the default model and in one like GPT-2."""
    kinds = {
        Words("token table", "词元嵌入表"): lambda n: n == "wte",
        Words("positions", "位置嵌入表"): lambda n: n == "wpe",
        Words("attention weights", "注意力的权重"): lambda n: n.endswith(("w_qkv", "w_proj")),
        Words("MLP weights", "前馈网络的权重"): lambda n: n.endswith(("w_fc", "w_out")),
        Words("biases of linear layers", "线性层的偏置"): lambda n: n.rpartition(".")[2].startswith("b"),
        Words("gains and biases of LayerNorm", "层归一化的增益与偏置"): lambda n: ".ln_" in f".{n}",
        Words("head", "语言模型头"): lambda n: n == "lm_head.w",
    }
    counts = []
    for config in (ModelConfig(), PUBLISHED):
        left = {n: math.prod(shape) for n, shape in parameter_shapes(config).items()}
        total, found = sum(left.values()), []
        for chosen in reversed(kinds.values()):  # a LayerNorm's bias is no linear layer's
            names = [n for n in left if chosen(n)]
            found.append(sum(left.pop(n) for n in names))
        if left:
            raise LookupError(f"of no kind: {', '.join(left)}")
        counts.append([f"{n:,} ({n / total:.1%})" for n in reversed(found)] + [f"{total:,}"])
    rows = zip((*kinds, Words("total", "合计")), *counts, strict=True)
    return table(Words("Parameters|Default model|GPT-2", "参数个数|默认模型|GPT-2"), rows, lang)


@block
def initial(page: Path, lang: str) -> str:
    """The standard deviation of each kind of initial number, at three depths."""
    rows = [
        (Words("tables, `w_qkv`, `w_fc`, head", "嵌入表、`w_qkv`、`w_fc`、语言模型头"), *[f"{STD:g}"] * len(DEPTHS)),
        (Words("`w_proj`, `w_out`", "`w_proj`、`w_out`"), *(f"{residual_std(n):.6f}" for n in DEPTHS)),
        (Words("biases (mean 0)", "偏置（均值 0）"), *["0"] * len(DEPTHS)),
        (Words("gains of LayerNorm (mean 1)", "层归一化的增益（均值 1）"), *["0"] * len(DEPTHS)),
    ]
    return table(_depths(Words("Standard deviation", "标准差"), DEPTHS), rows, lang)


def _depths(first: Words, depths: Iterable[int], each: str = "{}") -> Words:
    shown = "|".join(each.format(f"L = {depth}") for depth in depths)
    return Words(f"{first.en}|{shown}", f"{first.zh}|{shown}")


@block
def layer_spread(page: Path, lang: str) -> str:
    """The spread of a linear layer's results for inputs of variance 1: by the formula, and drawn."""
    rng, rows = np.random.default_rng(1), []
    for width in (64, 256, 768, 2500):
        w = STD * rng.standard_normal((width, 64))
        y = linear.forward(rng.standard_normal((256, width)), w)[0]
        rows.append((width, f"{STD * math.sqrt(width):.3f}", f"{y.std():.3f}"))
    head = Words(f"C|{STD:g} √C|Standard deviation, drawn", f"C|{STD:g} √C|抽样所得标准差")
    return table(head, rows, lang)


@block
def stream_spread(page: Path, lang: str) -> str:
    """The spread of the residual stream after the last block of a new model, with and without the smaller weights."""
    found = [[f"{stream(depth, scaled):.4f}" for depth in DEPTHS] for scaled in (True, False)]
    rows = [
        (Words("`w_proj`, `w_out` divided by √(2L)", "`w_proj`、`w_out` 除以 √(2L)"), *found[0]),
        (Words("not divided", "不除"), *found[1]),
    ]
    return table(_depths(Words("Standard deviation", "标准差"), DEPTHS), rows, lang)


@cache
def stream(depth: int, scaled: bool) -> float:
    """Return the standard deviation of the stream that leaves the last block of a new model."""
    model = drawn(replace(SMALL, n_layers=depth), scaled=scaled)
    with no_grad():
        values = Trace.of(lambda: model.forward_logits(_text()[0])).values
    return float(values[f"blocks.{depth - 1}.x_out"].std())


@block
def initial_losses(page: Path, lang: str) -> str:
    """The first loss of a small model whose initial numbers have another spread, and how many arrays can learn."""
    rows = []
    for std in (0.0, 0.01, STD, 0.1, 0.5, 1.0):
        loss, zero, count = first_loss(std)
        rows.append((f"{std:g}", f"{loss:.3f}", f"{count - zero} / {count}"))
    head = Words("Standard deviation|First loss|Arrays with a gradient", "标准差|最初的损失|梯度不全为零的数组")
    return table(head, rows, lang)


@cache
def first_loss(std: float) -> tuple[float, int, int]:
    """Return a new model's loss, the number of arrays whose gradient is all zeros, and the number of arrays."""
    model = drawn(SMALL, std / STD)
    loss = model.loss(*_text())
    loss.backward()
    gradients = [np.asarray(p.grad) for p in model.parameters().values()]
    return loss.item(), sum(not g.any() for g in gradients), len(gradients)


def drawn(config: ModelConfig, factor: float = 1.0, scaled: bool = True) -> TinyGPT:
    """Return a model whose initial numbers have `factor` times their spread; all weights the same if not `scaled`."""
    arrays = {}
    for name, p in declared(config).items():
        std = p.std if scaled or not p.std else STD
        arrays[name] = host.draw(name, p.shape, p.mean, factor * std, 1, "float64")
    return TinyGPT(config, arrays=arrays, dtype="float64")


def _text() -> tuple[np.ndarray, np.ndarray]:
    tokens = np.random.default_rng(0).integers(0, SMALL.vocab_size, (2, SMALL.seq_len + 1))
    return tokens[:, :-1], tokens[:, 1:]


@block
def norm_gradients(page: Path, lang: str) -> str:
    """The gradient's norm in the first and in the last block of a new model, pre-norm and post-norm."""
    depths, rows = (2, 6, 12), []
    for position, name in (("pre", Words("pre-norm", "前置归一化")), ("post", Words("post-norm", "后置归一化"))):
        found = [block_gradients(position, depth) for depth in depths]
        for words, which in ((Words("first block", "第一个块"), 0), (Words("last block", "最后一个块"), 1)):
            rows.append((name, words, *(f"{norms[which]:.3f}" for norms in found)))
    return table(_depths(Words("|Gradient of `w_fc`", "|`w_fc` 的梯度"), depths), rows, lang)


@cache
def block_gradients(position: str, depth: int) -> tuple[float, float]:
    """Return the norms of w_fc's gradients in the first and the last block; weights have variance 1/C."""
    config = replace(SMALL, n_layers=depth, norm_position=position)
    model = drawn(config, 1 / (STD * math.sqrt(SMALL.d_model)), scaled=False)
    model.loss(*_text()).backward()
    first, last = (np.asarray(model.parameters()[f"blocks.{i}.mlp.w_fc"].grad) for i in (0, depth - 1))
    return float(np.linalg.norm(first)), float(np.linalg.norm(last))


@block
def score_spread(page: Path, lang: str) -> str:
    """Dot products of random queries and keys by width: spread, largest of eight weights, slope of the softmax."""
    rows = []
    for width in (4, 16, 64, 256):
        plain, scaled = score_statistics(width)
        shown = [f"{x:.2f}" for x in (plain[0], scaled[0])] + [f"{x:.3f}" for x in (*plain[1:], *scaled[1:])]
        rows.append((width, f"{math.sqrt(width):g}", *(shown[i] for i in (0, 2, 3, 1, 4, 5))))
    head = Words(
        "D|√D|Spread of q·k|Largest weight|Slope|Spread of q·k / √D|Largest weight|Slope",
        "D|√D|q·k 的标准差|最大权重|斜率|q·k / √D 的标准差|最大权重|斜率",
    )
    return table(head, rows, lang)


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


@block
def shifted(page: Path, lang: str) -> str:
    """The softmax of 1000 and 1001 as the formula says, and with the maximum subtracted."""
    x = np.array([1000.0, 1001.0])
    with np.errstate(all="ignore"):
        plain = np.exp(x) / np.exp(x).sum()
    moved = x - x.max()
    rows = []
    for words, given, p in (
        (Words("as written", "不减最大值"), x, plain),
        (Words("maximum subtracted", "减去最大值"), moved, softmax.forward(x)[0]),
    ):
        with np.errstate(all="ignore"):
            powers = np.exp(given)
        shown = [", ".join(f"{number:.6g}" for number in numbers) for numbers in (given, powers)]
        rows.append((words, *shown, f"{powers.sum():.6g}", ", ".join(f"{number:.6f}" for number in p)))
    return table(Words("|x|exp(x)|Sum|softmax", "|x|exp(x)|和|softmax"), rows, lang)


@block
def activations(page: Path, lang: str) -> str:
    """GELU and ReLU and their slopes at a few places."""
    rows = []
    for x in (-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0):
        at, one = np.array([x]), np.array([1.0])
        row = [f"{x:g}"]
        for equation in (relu, gelu):
            y, saved = equation.forward(at)
            slope = np.asarray(equation.vjp(saved, one)).reshape(-1)[0]
            row += [f"{y[0] + 0.0:.6f}", f"{slope + 0.0:.6f}"]
        rows.append(row)
    return table(Words("x|ReLU|Slope|GELU|Slope", "x|ReLU|斜率|GELU|斜率"), rows, lang)


@block
def dropped(page: Path, lang: str) -> str:
    """What dropout with p = 1/2 makes of two numbers, for every mask, and the mean of all."""
    x, keep = np.array([1.0, 2.0]), 0.5
    masked = [(np.array(mask), np.array(mask) * x / keep) for mask in product((1, 0), repeat=len(x))]
    mean = np.mean([y for _, y in masked], axis=0)
    rows = [*((_vector(mask), _vector(y)) for mask, y in masked), (Words("mean", "平均"), _vector(mean))]
    return table(Words("Mask m|x m / (1 − p)", "掩码 m|x m / (1 − p)"), rows, lang)


def _vector(numbers: np.ndarray) -> str:
    return f"({', '.join(f'{x:g}' for x in numbers)})"


@block
def tied(page: Path, lang: str) -> str:
    """The gradient of a tied token table: what the look-up gives, what the head gives, and their sum."""
    lookup, head, both = tied_gradients()
    names = (r"\partial W_{te}^{\text{look-up}}", r"\partial W_{te}^{\text{head}}", r"\partial W_{te}")
    if lang == "zh":
        names = (r"\partial W_{te}^{\text{查表}}", r"\partial W_{te}^{\text{语言模型头}}", r"\partial W_{te}")
    shown = [bmatrix([f"{round(x, 3) + 0.0:.3f}" for x in row] for row in g) for g in (lookup, head, both)]
    return display_lines([f"{name} = {g}" for name, g in zip(names, shown, strict=True)])


def tied_gradients() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients by use, from a model whose head is a copy of its table, and that of the tied model."""
    weights = {n: array(w) for n, w in paper_gpt_4.WEIGHTS.items()}
    tokens, targets = [list(BYTES[:-1])], [list(BYTES[1:])]
    copy = model_of(paper_gpt_4.CONFIG, weights | {"lm_head.w": weights["wte"].T.copy()})
    copy.loss(tokens, targets).backward()
    config = replace(paper_gpt_4.CONFIG, tied_embeddings=True)
    one = model_of(config, {n: w for n, w in weights.items() if n != "lm_head.w"})
    one.loss(tokens, targets).backward()
    found = copy.parameters()
    both = one.parameters()["wte"].grad
    return np.asarray(found["wte"].grad), np.asarray(found["lm_head.w"].grad).T, np.asarray(both)


@block
def decaying(page: Path, lang: str) -> str:
    """How many numbers decay, and what decay alone leaves of a weight after some updates at the default settings."""
    config, optim = ModelConfig(), OptimConfig()
    count = {n: math.prod(shape) for n, shape in parameter_shapes(config).items()}
    total, some = sum(count.values()), sum(count[n] for n in matrices(config))
    rate = 1 - optim.lr * optim.weight_decay
    said = Words(
        f"Of the default model's {total:,} numbers {some:,} decay, and {total - some:,} do not. Each update "
        f"multiplies a weight by 1 − {optim.lr:g} × {optim.weight_decay:g} = {rate:g} at the highest learning rate:",
        f"默认模型的 {total:,} 个数中，{some:,} 个衰减，{total - some:,} 个不衰减。学习率最高时，每次更新使权重乘以 "
        f"1 − {optim.lr:g} × {optim.weight_decay:g} = {rate:g}：",
    ).said(lang)
    rows = [(f"{n:,}", f"{rate**n:.4f}") for n in (1, 100, 1000, 10000)]
    return f"{said}\n\n{table(Words('Updates|What is left', '更新次数|剩余比例'), rows, lang)}"
