"""Attention as heat maps: the paper GPT's one head from scores to weights, and the same input through two heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.book.lessons.examples.paper_gpt import VOCABULARY
from byhand.book.pictures.passes import TOKENS, attention_of, pass_of
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import HEAT, ONE, Across, Arrow, Caption, Cells, Column, Key, Sign, heading
from byhand.book.words.language import Said, Words, say

CELL = (44, 32)


def of_paper_gpt() -> dict[str, np.ndarray]:
    """Return scores and weights (3, 3) of the paper GPT's only head."""
    values = pass_of("paper-gpt").trace.values
    return {kind: settled(values[f"blocks.0.attn.{kind}"])[0, 0] for kind in ("scores", "weights")}


def of_heads(heads: int) -> np.ndarray:
    """Return the weights (H, 3, 3) of the lesson `multi-head` with so many heads."""
    return settled(attention_of(heads).values["attn.weights"])[0]


def settled(x: Any) -> np.ndarray:
    """Return numbers without rounding residue, which differs between machines."""
    return np.round(np.asarray(x, dtype=float), 6) + 0.0


def _map(
    found: np.ndarray, of: Sequence[Said], title: Said, queries: bool = True, mask: bool = True, shows: str = ""
) -> Cells:
    """Return a map with its keys, and with its queries at the left; weights have what the mask hides crossed out."""
    later = [(int(t), int(s)) for t, s in zip(*np.triu_indices(len(found), 1), strict=True)]
    rows = [Words(f"query {say(n, 'en')}", f"查询 {say(n, 'zh')}") for n in of]
    names = [Words(f"key {n}", f"键 {n}") if isinstance(n, str) else n for n in of]
    return Cells(found.tolist(), HEAT, ONE if mask else 0, rows if queries else (), names, later if mask else (),
                 title=title, cell=CELL, shows=shows)  # fmt: skip


KEY = Key(
    [Sign(Words("hidden by the mask: the key comes later", "被掩码遮住：键在查询之后"), kind="hidden"),
     Sign(Words("weight", "权重"), kind="scale")], at="middle",
)  # fmt: skip


@scene(
    Words("One head: scores, mask, weights", "一个头：分数、掩码、权重"),
    Words("Attention of the paper GPT's one head to its three words; the mask hides later keys. ",
          "纸上的 GPT 唯一的头对三个词的注意力；掩码遮住之后的键。"),
)  # fmt: skip
def attention_one_head() -> Column:
    """Scores and weights of the paper GPT's tokens side by side, masked cells crossed out."""
    found, words = of_paper_gpt(), [VOCABULARY[token] for token in TOKENS]
    maps = [
        _map(found["scores"], words, Words("scores S", "分数 S"), mask=False, shows="attn.scores"),
        Arrow(Words("mask", "掩码"), "softmax", right=True),
        _map(
            found["weights"],
            words,
            Words("weights P, rows sum to 1", "权重 P，每行之和为 1"),
            queries=False,
            shows="attn.weights",
        ),
    ]
    return Column(
        [heading(Words("The three words of the paper GPT", "纸上的 GPT：三个词")), Across(maps, gap=0), KEY]
    )


@scene(
    Words("The same input through one head and through two", "同一输入经过一个头与两个头"),
    Words("The same three positions through one head and through two, as attention weights. ",
          "同样三个位置经过一个头与两个头的注意力权重。"),
)  # fmt: skip
def attention_two_heads() -> Column:
    """Weights of the lesson `multi-head`: a single head above, two heads below."""
    of = ("0", "1", "2")
    words = Words(
        "One head makes one pattern of weights for all four columns. Two heads make one for each two columns.",
        "一个头对全部四列使用同一组权重。两个头各对两列使用一组权重。",
    )
    one = _map(of_heads(1)[0], of, Words("one head, D = 4", "一个头，D = 4"))
    two = [
        _map(weights, of, Words(f"head {h}, D = 2", f"头 {h}，D = 2"), queries=h == 0)
        for h, weights in enumerate(of_heads(2))
    ]
    return Column([Across([one, Caption(words)], widths=(200, None)), Across(two), KEY])
