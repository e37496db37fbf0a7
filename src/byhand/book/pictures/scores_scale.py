"""The reason for dividing scores by the root of D: the spread of dot products, and their softmax."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, RUST, TINY
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column, heading
from byhand.book.pictures.scene.marks import Bars, Dots
from byhand.book.words.language import COMMA, Words
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


@scene("Why scores are divided by √D", "分数为什么除以 √D")
def scale_by_root_d() -> Column:
    """Dot products for three widths as dots, then softmax of five of them with and without the scale."""
    titles = (
        Words("softmax of five of them, not scaled", "其中五个的 softmax，不缩放"),
        Words("the same, divided by √D first", "同样五个，先除以 √D"),
    )
    soft = [
        Across([_softmax(d, weights(d)[i], colour) for d in WIDTHS], gap=6, title=words, at="start")
        for i, (words, colour) in enumerate(zip(titles, (RUST, BLUE), strict=True))
    ]
    first = heading(Words("q · k of random vectors, variance 1", "方差为 1 的随机向量的点积 q · k"))
    return Column([first, *map(_cloud, WIDTHS), *soft])


def _cloud(d: int) -> Across:
    """Return the dots of one width, with the spread that they should have and have."""
    measured = decimal(spread(d), 3)
    words = f"√D = {decimal(d**0.5)}", Words(f"spread {measured}", f"标准差 {measured}")
    name = Column([Caption(f"D = {d}", bold=True), *(Caption(w, size=TINY) for w in words)], gap=-2, join=COMMA)
    ticks = (-100, -50, 0, 50, 100) if d == WIDTHS[-1] else {-100: "", 100: ""}
    plot = Chart((-100.0, 100.0), (-1, 1), [Dots(scores(d)[0])], 40, ticks, lines=False)
    return Across([name, plot], widths=(80, None))


def _softmax(d: int, found: np.ndarray, colour: str) -> Chart:
    said = [decimal(round(float(w), 2)) if w == found.max() else "" for w in found]
    says = Words(f"D = {d}, largest {max(said)}", f"D = {d}，最大的为 {max(said)}")
    return Chart((-0.5, FEW - 0.5), (0, 1), [Bars(found, colour, words=said)], 64, (), (), f"D = {d}", says=says)
