"""The reason for dividing scores by the root of D: the spread of dot products, and their softmax."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.axes import Axes
from byhand.book.pictures.canvas import BLUE, GREY, RUST, SMALL, TINY, Canvas
from byhand.book.pictures.picture import picture, sentence
from byhand.book.words.language import Words
from byhand.equations.attention_scores import attention_scores
from byhand.equations.matmul import matmul
from byhand.equations.softmax import softmax

WIDTHS, KEYS, SEED = (4, 64, 1024), 60, 13
FEW = 5  # keys that a softmax weighs


@cache
def scores(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the dot products of a random query with random keys, bare and divided by the root of D."""
    draw = Random(SEED + width).gauss
    q, k = (np.asarray([[draw(0, 1) for _ in range(width)] for _ in range(KEYS)]) for _ in range(2))
    bare = np.diagonal(matmul.forward(q, k.T)[0])
    scaled = attention_scores.forward(q[:, None, None, :], k[:, None, None, :])[0][:, 0, 0, 0]
    return np.round(bare, 6), np.round(scaled, 6)


def weights(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the softmax of the first scores, bare and scaled."""
    bare, scaled = (softmax.forward(x[:FEW])[0] for x in scores(width))
    return bare, scaled


def spread(width: int) -> float:
    """Return the root of the mean square of the bare dot products."""
    return float(np.sqrt(np.mean(scores(width)[0] ** 2)))


def in_words(lang: str) -> str:
    """Say the spreads, and the largest weights."""
    said = [
        Words("D = {d}: spread {s}, √D = {root}", "D = {d}：标准差 {s}，√D = {root}").said(
            lang, d=d, s=decimal(spread(d), 3), root=decimal(d**0.5)
        )
        for d in WIDTHS
    ]
    bare, scaled = (decimal(float(w.max()), 3) for w in weights(WIDTHS[-1]))
    said.append(
        Words(
            "for D = {d} the largest of {n} weights is {bare} without the scale and {scaled} with it",
            "D = {d} 时，{n} 个权重中最大的一个，不缩放为 {bare}，缩放后为 {scaled}",
        ).said(lang, d=WIDTHS[-1], n=FEW, bare=bare, scaled=scaled)
    )
    return sentence(lang, Words("Dot products of random vectors. ", "随机向量的点积。"), said)


@picture(Words("Why scores are divided by √D", "分数为什么除以 √D"), in_words)
def scale_by_root_d(canvas: Canvas) -> None:
    """Dot products for three widths as dots, then softmax of five of them with and without the scale."""
    canvas.heading(Words("q · k of random vectors, variance 1", "方差为 1 的随机向量的点积 q · k"))
    low, high = -100.0, 100.0
    for d in WIDTHS:
        axes = Axes(canvas, 84, canvas.y, 302, 40, (low, high), (-1, 1))
        canvas.text(4, canvas.y + 14, f"D = {d}", size=SMALL, bold=True)
        measured = decimal(spread(d), 3)
        canvas.text(4, canvas.y + 28, f"√D = {decimal(d**0.5)}", size=TINY)
        canvas.text(4, canvas.y + 41, Words(f"spread {measured}", f"标准差 {measured}"), size=TINY)
        axes.level(0, thick=0.6)
        for i, x in enumerate(scores(d)[0]):
            canvas.dot(axes.x(float(x)), axes.y((i % 5 - 2) * 0.3), 2.5, BLUE, opacity=0.6)
        canvas.y += 50
    axes = Axes(canvas, 84, canvas.y - 10, 302, 1, (low, high), (0, 1))
    axes.x_ticks((-100, -50, 0, 50, 100), lines=False)
    canvas.y += 26
    for row, words in enumerate(
        (
            Words("softmax of five of them, not scaled", "其中五个的 softmax，不缩放"),
            Words("the same, divided by √D first", "同样五个，先除以 √D"),
        )
    ):
        canvas.text(4, canvas.y + 14, words, size=SMALL, bold=True)
        canvas.y += 38
        for i, d in enumerate(WIDTHS):
            axes = Axes(canvas, 4 + i * 132, canvas.y, 126, 64, (-0.5, FEW - 0.5), (0, 1))
            found = weights(d)[row]
            for key, weight in enumerate(found):
                said = decimal(round(float(weight), 2)) if weight == found.max() else ""
                axes.bar(key, float(weight), 16, said, (RUST, BLUE)[row])
            axes.zero()
            canvas.text(axes.left + 63, axes.bottom + 15, f"D = {d}", at="middle", size=TINY, colour=GREY)
        canvas.y += 88
