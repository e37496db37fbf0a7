"""Generated tables of numbers, each worked out by the code that it describes: heads, cache, sampling, costs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from byhand.book.lessons.examples.multi_head import INPUT
from byhand.book.lessons.examples.paper_gpt_4 import WEIGHTS
from byhand.book.numbers import closed_form as example
from byhand.book.pages.blocks.markdown import block, decimals, display_lines, table
from byhand.book.pages.blocks.shapes import EXAMPLE, TOKENS
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.engine import no_grad
from byhand.equations.attention_scores import attention_scores
from byhand.equations.causal_softmax import causal_softmax
from byhand.equations.linear import linear
from byhand.equations.softmax import softmax
from byhand.equations.split_qkv import split_qkv
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.equations.top_p import top_p
from byhand.model import TinyGPT
from byhand.runtimes.tape.decoder import KVCache
from byhand.tracing.trace import Trace

LOGITS = np.array([2.0, 1.0, 0.0, -1.0])


@block
def heads(page: Path, lang: str) -> str:
    """The attention weights of the lesson's packed projection, read as one head and as two."""
    h, w, b = (example.array(x) for x in (INPUT, WEIGHTS["blocks.0.attn.w_qkv"], WEIGHTS["blocks.0.attn.b_qkv"]))
    packed, _ = linear.forward(h, w, b)
    parts = []
    for count in (1, 2):
        q, k, _ = split_qkv.forward(packed, n_heads=count)[0]
        scores = attention_scores.forward(q, k)[0]
        weights = causal_softmax.forward(scores)[0]
        lines = []
        for h in range(count):
            product = _matrix([[f"{x:g}" for x in row] for row in q[0, h] @ k[0, h].T])
            shown = _matrix([list(map(decimals, row)) for row in weights[0, h]])
            lines.append(rf"Q_{h} K_{h}^{{\top}} = {product}, \; P_{h} = {shown}")
        width = q.shape[-1]
        words = Words(f"Heads: {count}. Width of a head: {width}.", f"头数：{count}。每个头的宽度：{width}。")
        parts.append(f"{words.said(lang)}\n\n{display_lines(lines)}")
    return "\n\n".join(parts)


def _matrix(rows: list[list[str]]) -> str:
    return r"\begin{bmatrix}" + r" \\ ".join(" & ".join(row) for row in rows) + r"\end{bmatrix}"


@block
def sampling(page: Path, lang: str) -> str:
    """Temperature, top-k and top-p on four logits: what each does to the probabilities."""
    cases = [(f"temperature={t:g}", temperature.forward(LOGITS, tau=t)[0]) for t in (0.5, 1.0, 2.0)]
    cases += [("top_k=2", top_k.forward(LOGITS, k=2)[0]), ("top_p=0.9", top_p.forward(LOGITS, p=0.9)[0])]
    rows = [(f"`{name}`", *(decimals(p) for p in softmax.forward(z)[0])) for name, z in cases]
    columns = "|".join(f"z = {z:g}" for z in LOGITS)
    return table(Words(f"Setting|{columns}", f"设置|{columns}"), rows, lang)


@block
def cache_rows(page: Path, lang: str) -> str:
    """Three tokens decoded without and with a cache: rows projected and scores computed at each step, as counted."""
    model = TinyGPT(EXAMPLE, dtype="float64")
    for parameter in model.parameters().values():
        parameter.requires_grad = False  # a cache passes no gradient back
    cache = KVCache(model, 1)
    rows, totals = [], [0, 0, 0, 0]
    for n in range(1, len(TOKENS[0]) + 1):
        counts = [*_work(model, TOKENS[0][:n], None), *_work(model, TOKENS[0][n - 1 : n], cache)]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        rows.append((n, TOKENS[0][:n], *counts))
    rows.append((Words("together", "合计"), "", *totals))
    head = Words(
        "Step|Tokens so far|Rows without|Scores without|Rows with|Scores with",
        "步|已有词元|无缓存：行|无缓存：分数|有缓存：行|有缓存：分数",
    )
    return table(head, rows, lang)


def _work(model: TinyGPT, tokens: list[int], cache: KVCache | None) -> tuple[int, int]:
    """Return how many query rows and how many scores attention computes."""
    applied = Trace.of(lambda: model.forward_logits([tokens], cache)).applications
    shapes = [a.results[0].shape for a in applied if a.equation is attention_scores]
    return sum(b * t for b, _, t, _ in shapes), sum(map(math.prod, shapes))


@block
def cache_logits(page: Path, lang: str) -> str:
    """The logits after each token of the example, without a cache and with one."""
    rows = []
    for n, whole, cached in cached_logits():
        rows.append((n, Words("without", "无"), *map(decimals, whole)))
        rows.append((n, Words("with", "有"), *map(decimals, cached)))
    return table(Words("Step|Cache|z[0]|z[1]|z[2]|z[3]", "步|缓存|z[0]|z[1]|z[2]|z[3]"), rows, lang)


def cached_logits() -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return for each length of the example its last logits, computed as a whole and token by token."""
    model = TinyGPT(EXAMPLE, dtype="float64")
    cache = KVCache(model, 1)
    with no_grad():
        return [
            (
                n,
                model.forward_logits([TOKENS[0][:n]]).data[0, -1],
                model.forward_logits([TOKENS[0][n - 1 : n]], cache).data[0, -1],
            )
            for n in range(1, len(TOKENS[0]) + 1)
        ]


@block
def costs(page: Path, lang: str) -> str:
    """Multiplications of one forward pass over one sequence, by operation, at the default sizes."""
    c = ModelConfig()
    t, d, f, v = c.seq_len, c.d_model, c.ff_width, c.vocab_size
    rows = [
        (Words("embedding look-up", "查嵌入表"), "0", 0, Words("copies T C numbers", "只复制 T C 个数")),
        (Words("queries, keys, values", "查询、键、值"), "3 T C²", 3 * t * d * d, ""),
        (Words("scores", "分数"), "T² C", t * t * d, ""),
        (Words("weighted sum", "加权求和"), "T² C", t * t * d, ""),
        (Words("output projection", "输出投影"), "T C²", t * d * d, ""),
        (Words("both MLP layers", "前馈网络两层"), "2 T C F", 2 * t * d * f, ""),
        (
            Words("LM head", "语言模型头"),
            "T C V",
            t * d * v,
            Words("once, not in each block", "只有一次，不随块重复"),
        ),
    ]
    return table(Words("Operation|Multiplications|Default sizes|Note", "运算|乘法次数|默认规模|说明"), rows, lang)


@block
def uniform(page: Path, lang: str) -> str:
    """The loss of a model that finds every byte equally likely."""
    v = ModelConfig().vocab_size
    nats, bits = decimals(math.log(v)), f"{math.log2(v):g}"
    return Words(f"ln {v} = {nats} nats = {bits} bits", f"ln {v} = {nats} 奈特 = {bits} 比特").said(lang)
