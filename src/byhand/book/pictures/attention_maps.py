"""Attention as heat maps: the paper GPT's one head from scores to weights, and the same input through two heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.book.lessons.examples.paper_gpt import VOCABULARY
from byhand.book.pictures.canvas import SMALL, TINY, Canvas
from byhand.book.pictures.heat import crossed, heat, mask, scale
from byhand.book.pictures.passes import TOKENS, attention_of, pass_of
from byhand.book.pictures.picture import picture, row, sentence
from byhand.book.words.language import COMMA, Said, Words

CELL, SIDE = (44, 32), 3 * 44
KEY, QUERY = Words("key {of}", "键 {of}"), Words("query {of}", "查询 {of}")
HIDDEN = Words("hidden by the mask: the key comes later", "被掩码遮住：键在查询之后")
SCORES, WEIGHTS = Words("scores S", "分数 S"), Words("weights P, rows sum to 1", "权重 P，每行之和为 1")
ONE = Words("one head, D = 4", "一个头，D = 4")


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


def _words(lang: str) -> list[str]:
    return [VOCABULARY[token].said(lang) for token in TOKENS]


def _rows(weights: np.ndarray, of: Sequence[object], lang: str) -> list[str]:
    """Say each row of weights up to the diagonal."""
    return [
        row(lang, QUERY.said(lang, of=n), found[: t + 1])
        for t, (n, found) in enumerate(zip(of, weights, strict=True))
    ]


def one_in_words(lang: str) -> str:
    """Say the weights of the paper GPT."""
    start = Words(
        "Attention weights of the paper GPT for its three words; later keys are masked. ",
        "纸上的 GPT 对三个词的注意力权重；之后的键被掩码遮住。",
    )
    return sentence(lang, start, _rows(of_paper_gpt()["weights"], _words(lang), lang))


def two_in_words(lang: str) -> str:
    """Say the weights of one head and of two."""
    start = Words(
        "The same three positions through one head and through two, as attention weights. ",
        "同样三个位置经过一个头与两个头的注意力权重。",
    )
    heads = [(Words("one head", "一个头"), of_heads(1)[0])]
    heads += [(Words(f"head {h} of two", f"两个头中的头 {h}"), weights) for h, weights in enumerate(of_heads(2))]
    rows = (
        f"{words.said(lang)}{COMMA.said(lang)}{said}"
        for words, weights in heads
        for said in _rows(weights, (0, 1, 2), lang)
    )
    return sentence(lang, start, rows)


def _map(
    canvas: Canvas, x: float, title: Said, rows: np.ndarray, of: Sequence[object], *, queries: bool = True,
    weights: bool = True,
) -> float:  # fmt: skip
    """Draw a map with its title above it and its keys, and with its queries at the left; return its lower edge."""
    canvas.text(x + SIDE / 2, canvas.y + 13, title, at="middle", size=SMALL, bold=True)
    return heat(
        canvas,
        x,
        canvas.y + 38,
        rows.tolist(),
        cell=CELL,
        largest=1.0 if weights else 0.0,
        rows_said=[QUERY.said(canvas.lang, of=n) for n in of] if queries else (),
        columns_said=[n if isinstance(n, str) else KEY.said(canvas.lang, of=n) for n in of],
        hidden=mask if weights else None,
    )


def _key(canvas: Canvas) -> None:
    """Explain crossed cells and the colours of weights."""
    crossed(canvas, 56, canvas.y, 24, 16)
    canvas.text(86, canvas.y + 12, HIDDEN, size=SMALL)
    scale(canvas, 72, canvas.y + 26, 0.0, 1.0)
    canvas.text(228, canvas.y + 36, Words("weight", "权重"), size=SMALL)
    canvas.y += 44


@picture(Words("One head: scores, mask, weights", "一个头：分数、掩码、权重"), one_in_words)
def attention_one_head(canvas: Canvas) -> None:
    """Scores and weights of the paper GPT's tokens side by side, masked cells crossed out."""
    found = of_paper_gpt()
    canvas.heading(Words("The three words of the paper GPT", "纸上的 GPT：三个词"))
    words = _words(canvas.lang)
    left, right = 72, 247
    bottom = _map(canvas, left, SCORES, found["scores"], words, weights=False)
    _map(canvas, right, WEIGHTS, found["weights"], words, queries=False)
    middle = canvas.y + 38 + 1.5 * CELL[1]
    canvas.arrow([(left + SIDE + 8, middle), (right - 8, middle)])
    canvas.text((left + SIDE + right) / 2, middle - 8, Words("mask", "掩码"), at="middle", size=TINY)
    canvas.text((left + SIDE + right) / 2, middle + 16, "softmax", at="middle", size=TINY)
    canvas.y = bottom + 14
    _key(canvas)


@picture(Words("The same input through one head and through two", "同一输入经过一个头与两个头"), two_in_words)
def attention_two_heads(canvas: Canvas) -> None:
    """Weights of the lesson `multi-head`: a single head above, two heads below."""
    bottom = _map(canvas, 56, ONE, of_heads(1)[0], (0, 1, 2))
    lines = (
        Words("One head makes one", "一个头对全部四列"),
        Words("pattern of weights", "使用同一组权重。"),
        Words("for all four columns.", ""),
        Words("Two heads make one", "两个头各对两列"),
        Words("for each two columns.", "使用一组权重。"),
    )
    canvas.text_lines(216, canvas.y + 48, lines, 17, SMALL)
    canvas.y = bottom + 12
    for h, weights in enumerate(of_heads(2)):
        title = Words(f"head {h}, D = 2", f"头 {h}，D = 2")
        bottom = _map(canvas, (56, 250)[h], title, weights, (0, 1, 2), queries=h == 0)
    canvas.y = bottom + 14
    _key(canvas)
