"""What the page asks: how the small classifier learns."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from byhand.book.lessons.examples import classifier
from byhand.book.numbers import closed_form
from byhand.optim import AdamW


def classifier_run(*shown: int) -> Iterator[tuple[int, float, np.ndarray]]:
    """Yield updates, the loss, and the probability of each picture's right class, for the small classifier."""
    p = classifier.given_weights(closed_form.array)
    optimizer = AdamW(classifier.RATE, weight_decay=0.0)  # its eps is too small to show in six decimals
    for n in range(max(shown) + 1):
        for tensor in p.values():
            tensor.grad = None
        loss: Any = classifier.loss_of(p, closed_form.array)
        if n in shown:
            yield n, loss.item(), loss.node.saved[0][range(len(classifier.CLASSES)), classifier.CLASSES]
        loss.backward()
        optimizer.step(p)
