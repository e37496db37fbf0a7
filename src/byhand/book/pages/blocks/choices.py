"""Generated numbers behind design choices: bytes as tokens, sizes, dropout, tied tables, weight decay."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from byhand.book.lessons.examples.paper_gpt import CONFIG, WEIGHTS, model_of
from byhand.book.numbers.closed_form import array
from byhand.book.pages.blocks.family import PUBLISHED, TOTAL, sizes_of
from byhand.book.pages.blocks.markdown import Rows, block, bmatrix, display_lines, table, table_block, vector
from byhand.book.pictures.passes import TARGETS, TOKENS
from byhand.book.words.language import Words
from byhand.config import ModelConfig, OptimConfig
from byhand.model import matrices, parameter_shapes
from byhand.tracing.gradients import passed_back
from byhand.tracing.trace import Trace


@table_block("Text|Characters|Bytes|Tokens", "文本|字符数|字节数|词元")
def in_bytes() -> Rows:
    """Short texts as characters and as bytes, the tokens of the default vocabulary."""
    for text in ("to be", "naïve", "你好", "🙂"):
        yield f"`{text}`", len(text), len(text.encode()), f"`{list(text.encode())}`"


@table_block("Parameters|Default model|GPT-2", "参数个数|默认模型|GPT-2")
def numbers_by_kind() -> Rows:
    """The sizes of each kind of parameter, in the default model and in GPT-2."""
    kinds = {
        Words("token table", "词元嵌入表"): lambda n: n == "wte",
        Words("positions", "位置嵌入表"): lambda n: n == "wpe",
        Words("attention weights", "注意力的权重"): lambda n: n.endswith(("w_qkv", "w_proj")),
        Words("MLP weights", "前馈网络的权重"): lambda n: n.endswith(("w_fc", "w_out")),
        Words("biases of linear layers", "线性层的偏置"): lambda n: ".b_" in n or n.endswith(".b"),
        Words("gains and biases of LayerNorm", "层归一化的增益与偏置"): lambda n: "ln_" in n,
        Words("head", "语言模型头"): lambda n: n == "lm_head.w",
    }
    columns = []
    for config in (ModelConfig(), PUBLISHED):
        sizes = sizes_of(config, kinds)
        columns.append([*(f"{n:,} ({n / sum(sizes):.1%})" for n in sizes), f"{sum(sizes):,}"])
    yield from zip((*kinds, TOTAL), *columns, strict=True)


@table_block("Mask m|x m / (1 − p)", "掩码 m|x m / (1 − p)")
def dropped() -> Rows:
    """Two numbers after dropout with p = 1/2, for every mask, and the mean over all masks."""
    x, keep = np.array([1.0, 2.0]), 0.5
    masks = [np.array(mask) for mask in product((1, 0), repeat=len(x))]
    for mask in masks:
        yield vector(mask), vector(mask * x / keep)
    yield Words("mean", "平均"), vector(np.mean([mask * x / keep for mask in masks], axis=0))


@block
def tied(page: Path, lang: str) -> str:
    """The gradient of a tied token table: the look-up's part, the head's part, and their sum."""
    names = Words("look-up", "查表").said(lang), Words("head", "语言模型头").said(lang)
    letters = [*(rf"\partial W_{{te}}^{{\text{{{name}}}}}" for name in names), r"\partial W_{te}"]
    shown = [bmatrix([f"{round(x, 3) + 0.0:.3f}" for x in row] for row in g) for g in tied_gradients()]
    return display_lines([f"{letter} = {g}" for letter, g in zip(letters, shown, strict=True)])


def tied_gradients() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients by use, the look-up's and the head's, and their sum."""
    weights = {n: array(w) for n, w in WEIGHTS.items() if n != "lm_head.w"}
    model = model_of(replace(CONFIG, tied_embeddings=True), weights)
    gradients = Trace.of(lambda: model.loss([TOKENS], [TARGETS])).backward()
    table = gradients.trace.tensor("wte")
    head, lookup = (passed_back(step, table) for step in gradients.uses(table))
    return lookup, head, gradients.by_name["wte"]


@block
def decaying(page: Path, lang: str) -> str:
    """The count of decaying numbers, and the share of a weight that decay alone leaves at the default settings."""
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
