"""Generated tables of numbers, each worked out by the code that it describes: heads, sampling, costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byhand.book.pages.blocks.markdown import block, bmatrix, decimals, display_lines, table
from byhand.book.pages.blocks.shapes import packed_example
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.equations.attention_scores import attention_scores
from byhand.equations.causal_softmax import causal_softmax
from byhand.equations.softmax import softmax
from byhand.equations.split_qkv import split_qkv
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.equations.top_p import top_p

LOGITS = np.array([2.0, 1.0, 0.0, -1.0])


@block
def heads(page: Path, lang: str) -> str:
    """The attention weights of one packed projection, read as one head and as two."""
    parts = []
    for count in (1, 2):
        q, k, _ = split_qkv.forward(packed_example(), n_heads=count)[0]
        scores = attention_scores.forward(q, k)[0]
        weights = causal_softmax.forward(scores)[0]
        lines = []
        for h in range(count):
            product = bmatrix([[f"{x:g}" for x in row] for row in q[0, h] @ k[0, h].T])
            shown = bmatrix([list(map(decimals, row)) for row in weights[0, h]])
            lines.append(rf"Q_{h} K_{h}^{{\top}} = {product}, \; P_{h} = {shown}")
        width = q.shape[-1]
        words = Words(f"Heads: {count}. Width of a head: {width}.", f"头数：{count}。每个头的宽度：{width}。")
        parts.append(f"{words.said(lang)}\n\n{display_lines(lines)}")
    return "\n\n".join(parts)


@block
def sampling(page: Path, lang: str) -> str:
    """Temperature, top-k and top-p on four logits: what each does to the probabilities."""
    cases = [(f"temperature={t:g}", temperature.forward(LOGITS, tau=t)[0]) for t in (0.5, 1.0, 2.0)]
    cases += [("top_k=2", top_k.forward(LOGITS, k=2)[0]), ("top_p=0.9", top_p.forward(LOGITS, p=0.9)[0])]
    rows = [(f"`{name}`", *(decimals(p) for p in softmax.forward(z)[0])) for name, z in cases]
    columns = "|".join(f"z = {z:g}" for z in LOGITS)
    return table(Words(f"Setting|{columns}", f"设置|{columns}"), rows, lang)


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
