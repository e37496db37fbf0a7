"""Generated facts of the page about the small classifier: how its training on four pictures goes on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.book.lessons.examples.classifier import CLASSES, RATE, given_weights, loss_of
from byhand.book.numbers.closed_form import array
from byhand.book.pages.blocks.markdown import Rows, decimals, table_block
from byhand.optim import AdamW

SHOWN = (0, 1, 2, 5, 10, 20, 40)


def training() -> Iterator[tuple[float, np.ndarray]]:
    """Yield the loss and the probability of each picture's right class: at first, then after each update."""
    p = given_weights(array)
    optimizer = AdamW(RATE, weight_decay=0.0)  # its eps is too small to show in six decimals
    while True:
        for tensor in p.values():
            tensor.grad = None
        loss = loss_of(p, array)
        assert loss.node is not None
        yield loss.item(), loss.node.saved[0][range(len(CLASSES)), CLASSES]
        loss.backward()
        optimizer.step(p)


@table_block(
    "Updates|Loss|p of the right class: vertical|horizontal|Read correctly",
    "更新次数|损失|竖线判为正确类别的概率|横线判为正确类别的概率|认对的张数",
)
def classifier_training() -> Rows:
    """The loss after some more updates, the probability of each kind of bar, and the count of correct pictures."""
    for step, (loss, right) in zip(range(max(SHOWN) + 1), training(), strict=False):
        if step in SHOWN:
            yield step, decimals(loss), decimals(right[0]), decimals(right[2]), int((right > 0.5).sum())
