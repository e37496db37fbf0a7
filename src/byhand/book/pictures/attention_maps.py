"""Attention as heat maps: one head from scores to weights, the same input through two heads, and two masks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from byhand.book.lessons.examples.paper_gpt import VOCABULARY
from byhand.book.pictures.passes import TOKENS, attention_of, pass_of
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.cells import HEAT, ONE, Cells
from byhand.book.pictures.scene.elements import Arrow, Key, Sign, told
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column, heading
from byhand.book.words.language import Said, Words, say
from byhand.equations.window_softmax import window_softmax

CELL = (44, 32)
QUERIES, WINDOW = 6, 3


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


def _map(found: np.ndarray, of: Sequence[Said], title: Said, mask: bool = True, **others: Any) -> Cells:
    """Return a map with its queries and keys; of weights, those that the mask makes 0 are crossed out."""
    hidden = [(int(t), int(s)) for t, s in np.argwhere(found == 0)] if mask else ()
    rows = [Words(f"query {say(n, 'en')}", f"查询 {say(n, 'zh')}") for n in of]
    names = [Words(f"key {n}", f"键 {n}") if isinstance(n, str) else n for n in of]
    shown = {"rows": rows, "columns": names, "hidden": hidden, "cell": CELL, **others}
    return Cells(found.tolist(), HEAT, ONE if mask else 0, title=title, **shown)


HIDDEN = Words("hidden by the mask: the key comes later", "被掩码遮住：键在查询之后")
KEY = Key([Sign(HIDDEN, kind="hidden"), Sign(Words("weight", "权重"), kind="scale")], at="middle")


@scene("One head of the paper GPT, from scores to weights", "纸上的 GPT 的一个头：从分数到权重")
def attention_one_head() -> Column:
    """Scores and weights of the paper GPT's tokens side by side, masked cells crossed out."""
    found, words = of_paper_gpt(), [VOCABULARY[token] for token in TOKENS]
    weights = Words("weights P, rows sum to 1", "权重 P，每行之和为 1")
    later = Words("the mask hides later keys", "掩码遮住后面的键")
    maps = [
        _map(found["scores"], words, Words("scores S", "分数 S"), mask=False, shows="attn.scores"),
        Arrow(Words("mask", "掩码"), "softmax", right=True, says=later),
        _map(found["weights"], words, weights, rows=(), shows="attn.weights"),
    ]
    return Column(
        [heading(Words("The three words of the paper GPT", "纸上的 GPT：三个词")), Across(maps, gap=0), KEY]
    )


@scene("Attention weights of one input, by one head and two", "同一输入经过一个头与两个头的注意力权重")
def attention_two_heads() -> Column:
    """Weights of the lesson `multi-head`: a single head above, two heads below."""
    words = Words(
        "One head makes one pattern of weights for all four columns. Two heads make one for each two columns.",
        "一个头对全部四列使用同一组权重。两个头各对两列使用一组权重。",
    )
    one, first, second = *of_heads(1), *of_heads(2)
    whole = _map(one, "012", Words("one head, D = 4", "一个头，D = 4"))
    two = [
        _map(first, "012", Words("head 0, D = 2", "头 0，D = 2")),
        _map(second, "012", Words("head 1, D = 2", "头 1，D = 2"), rows=()),
    ]
    return Column([Across([whole, Caption(words)], widths=(200, None)), Across(two), KEY])


@cache
def masks() -> dict[int, np.ndarray]:
    """Return the weights of equal scores: with a window of all positions, and with a small one."""
    return {w: window_softmax.forward(np.zeros((QUERIES, QUERIES)), window=w)[0] for w in (QUERIES, WINDOW)}


@scene(f"How many keys each of {QUERIES} queries sees", f"{QUERIES} 个查询各能看到多少个键")
def attention_windows() -> Column:
    """Both masks side by side; the depth of a cell's colour is its weight for equal scores."""
    titles = Words("causal", "因果掩码"), Words(f"window W = {WINDOW}", f"窗口 W = {WINDOW}")
    numbers, maps = [str(n) for n in range(QUERIES)], []
    for title, weights in zip(titles, masks().values(), strict=True):
        says = told(title, *(str(int((row > 0).sum())) for row in weights))
        maps.append(
            _map(weights, numbers, title, rows=numbers, columns=numbers, cell=(25, 25), shown=False, says=says)
        )
    words = Words("not seen; rows are queries, columns keys", "看不到；行是查询，列是键")
    return Column([Across(maps), Key([Sign(words, kind="hidden")], at="middle")])
