"""Generated tables of numbers, each worked out by the code that it describes: heads, sampling, costs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from byhand.book.lessons.examples import sampling as sampling_lesson
from byhand.book.pages.blocks.markdown import (
    Rows,
    block,
    bmatrix,
    decimals,
    display_lines,
    inline,
    table_block,
)
from byhand.book.pictures.passes import attention_of
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.equations.min_p import min_p
from byhand.equations.repetition_penalty import repetition_penalty
from byhand.equations.softmax import softmax
from byhand.equations.split_qkv import split_qkv
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.equations.top_p import top_p

LOGITS = np.array(sampling_lesson.LOGITS, dtype=float)


@block
def heads(page: Path, lang: str) -> str:
    """The attention weights of the lesson's packed projection, read as one head and as two."""
    parts = []
    for count in (1, 2):
        q, k, weights = (attention_of(count).tensor(f"attn.{name}").data for name in ("q", "k", "weights"))
        lines = []
        for h in range(count):
            product = bmatrix([f"{x:g}" for x in row] for row in q[0, h] @ k[0, h].T)
            shown = bmatrix(map(decimals, row) for row in weights[0, h])
            lines.append(rf"Q_{h} K_{h}^{{\top}} = {product}, \; P_{h} = {shown}")
        width = q.shape[-1]
        words = Words(f"Heads: {count}. Width of a head: {width}.", f"头数：{count}。每个头的宽度：{width}。")
        parts.append(f"{words.said(lang)}\n\n{display_lines(lines)}")
    return "\n\n".join(parts)


@table_block("Head|Queries|Keys|Values", "头|查询|键|值")
def head_columns() -> Rows:
    """The columns of the packed projection that each of two heads reads, of the lesson's width."""
    width = attention_of(1).tensor("attn.q").shape[-1]
    packed = np.arange(3.0 * width).reshape(1, 1, -1)
    split = split_qkv.forward(packed, n_heads=2)[0]
    for h in range(2):
        yield h, *(", ".join(f"{column:g}" for column in part[0, h, 0]) for part in split)


_COLUMNS = "|".join(f"z = {z:g}" for z in LOGITS)


@table_block(f"Setting|{_COLUMNS}", f"设置|{_COLUMNS}")
def sampling() -> Rows:
    """The probabilities of four logits under each setting; the penalty is on the first token and the last."""
    cases = {f"temperature={t:g}": temperature.forward(LOGITS, tau=t)[0] for t in (0.5, 1.0, 2.0)}
    cases |= {"top_k=2": top_k.forward(LOGITS, k=2)[0], "top_p=0.9": top_p.forward(LOGITS, p=0.9)[0]}
    cases["min_p=0.2"] = min_p.forward(LOGITS, p=0.2)[0]
    cases["repetition_penalty=2"] = repetition_penalty.forward(LOGITS, np.array([1, 0, 0, 2]), r=2.0)[0]
    for name, z in cases.items():
        yield f"`{name}`", *map(decimals, softmax.forward(z)[0])


@table_block("Operation|Formula|Multiplications|Default sizes|Purpose", "运算|公式|乘法次数|默认规模|用途")
def costs() -> Rows:
    """Multiplications of one forward pass over one sequence, by operation, at the default sizes."""
    c = ModelConfig()
    t, d, f, v = c.seq_len, c.d_model, c.ff_width, c.vocab_size
    rows = [
        (
            Words("embedding look-up", "查嵌入表"), r"E = W_{te}[\mathrm{token}]", "0", 0,
            Words("tokens to vectors; copies T C numbers", "词元变成向量；只复制 T C 个数"),
        ),
        (
            Words("queries, keys, values", "查询、键、值"), r"[Q, K, V] = H W_{qkv}", "3 T C²", 3 * t * d * d,
            Words("three views of each token", "每个词元的三种表示"),
        ),
        (
            Words("scores", "分数"), r"S = Q K^{\top} / \sqrt{D}", "T² C", t * t * d,
            Words("how well each query matches each key", "每个查询与每个键的匹配程度"),
        ),
        (
            Words("softmax", "softmax"), r"P = \mathrm{softmax}(S)", "0", 0,
            Words("weights that sum to 1; H T² exponentials", "和为 1 的权重；H T² 次指数"),
        ),
        (
            Words("weighted sum", "加权求和"), r"Y = P V", "T² C", t * t * d,
            Words("fetch from the tokens that matched", "从匹配的词元取回内容"),
        ),
        (
            Words("output projection", "输出投影"), r"A = Y W_{proj}", "T C²", t * d * d,
            Words("combine the heads", "组合各个头"),
        ),
        (
            Words("both MLP layers", "前馈网络两层"), r"\mathrm{GELU}(M W_{fc})\, W_{out}", "2 T C F", 2 * t * d * f,
            Words("compute on each token alone", "对每个词元单独计算"),
        ),
        (
            Words("LM head", "语言模型头"), r"Z = X_n W_{lm}", "T C V", t * d * v,
            Words("a score for each next token; once, not in each block", "给每个可能的下一个词元打分；只算一次"),
        ),
        (
            Words("loss", "损失"), r"-\log p_y", "0", 0,
            Words("measure the prediction; T V exponentials", "衡量预测；T V 次指数"),
        ),
        (
            Words("backward pass", "反向传播"), r"\partial A = \partial Y\, B^{\top}, \; \dots",
            Words("twice the forward pass", "前向的两倍"), "",
            Words("two products for each product", "每次矩阵乘法对应反向的两次"),
        ),
    ]  # fmt: skip
    for name, latex, *rest in rows:
        yield name, inline(latex), *rest


@block
def uniform(page: Path, lang: str, tokens: str = "") -> str:
    """The loss of a model that finds every byte, or each of so many tokens, equally likely."""
    v = int(tokens or ModelConfig().vocab_size)
    nats, bits = decimals(math.log(v)), f"{math.log2(v):g}"
    return Words(f"ln {v} = {nats} nats = {bits} bits", f"ln {v} = {nats} 奈特 = {bits} 比特").said(lang)
