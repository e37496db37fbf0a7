"""Cross-entropy as a curve: the loss as a function of the probability of the target."""

from __future__ import annotations

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.marks import Mark, Polyline
from byhand.book.words.language import Words
from byhand.equations.cross_entropy import cross_entropy

MARKED = (0.7, 0.1, 0.01)


def loss(p: float) -> float:
    """Return the cross-entropy of a target that has probability p, in nats."""
    logits = np.log(np.asarray([[p, 1 - p]]))
    return float(cross_entropy.forward(logits, np.asarray([0]))[0])


@scene("Cross-entropy: the loss by the target's probability", "交叉熵：损失随目标概率的变化")
def cross_entropy_curve() -> Chart:
    """The loss from p near 0 to p near 1."""
    ps = np.exp(np.arange(-6, 0, 0.05))
    marks = [
        Mark(p, loss(p), f"p = {p} → {decimal(round(loss(p), 3))}", "above right" if p > 0.5 else "right", BLUE)
        for p in MARKED
    ]
    return Chart(
        (0, 1), (0, 6), [Polyline(ps, list(map(loss, ps))), *marks], 210, (0, 0.25, 0.5, 0.75, 1), range(0, 7, 2),
        Words("p: probability the model gave to the target", "p：模型给目标的概率"),
        title=Words("loss in nats: −ln p", "损失（奈特）：−ln p"),
    )  # fmt: skip
