"""Cross-entropy as a curve: the loss as a function of the probability of the target."""

from __future__ import annotations

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.axes import Axes
from byhand.book.pictures.canvas import BLUE, RUST, SMALL, Canvas
from byhand.book.pictures.picture import picture, row, sentence
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.equations.cross_entropy import cross_entropy

BYTES = ModelConfig().vocab_size
MARKED = {0.7: "0.7", 0.1: "0.1", 0.01: "0.01", 1 / BYTES: f"1/{BYTES}"}


def loss(p: float) -> float:
    """Return the cross-entropy of a target that has probability p, in nats."""
    logits = np.log(np.asarray([[p, 1 - p]]))
    return float(cross_entropy.forward(logits, np.asarray([0]))[0])


def in_words(lang: str) -> str:
    """Say the loss at the marked probabilities."""
    start = Words("The loss −ln p against the probability p of the target. ", "损失 −ln p 随目标概率 p 的变化。")
    return sentence(lang, start, (row(lang, f"p = {name}", [loss(p)], 4) for p, name in MARKED.items()))


@picture(Words("Cross-entropy: what a probability costs", "交叉熵：概率越低，损失越大"), in_words)
def cross_entropy_curve(canvas: Canvas) -> None:
    """The loss from p near 0 to p near 1."""
    canvas.text(4, 14, Words("loss in nats: −ln p", "损失（奈特）：−ln p"), size=SMALL, bold=True)
    axes = Axes(canvas, 30, 28, 354, 210, (0, 1), (0, 6))
    axes.x_ticks(
        (0, 0.25, 0.5, 0.75, 1), Words("p: probability that the model gave the target", "p：模型给目标的概率")
    )
    axes.y_ticks(range(0, 7, 2))
    axes.zero()
    ps = [np.exp(-6 + 6 * k / 120) for k in range(120)]
    axes.curve(ps, [loss(p) for p in ps], BLUE)
    for (p, name), colour in zip(MARKED.items(), (BLUE, BLUE, BLUE, RUST), strict=True):
        words = f"p = {name} → {decimal(round(loss(p), 3))}"
        if colour == RUST:
            words += Words(" (all bytes equally likely)", "（每个字节概率相同）").said(canvas.lang)
        axes.point(p, loss(p), colour, words, dx=10, dy=-4 if p == 0.7 else 4)
    canvas.y = axes.bottom + 38
