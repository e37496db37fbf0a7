"""The 2 x 2 matrix core: forward, the loss of row 0, every gradient, one step of gradient descent, the loss after."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.examples import Maker
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content
from byhand.book.words.language import Words
from byhand.engine import Tensor, scope
from byhand.equations.add import add
from byhand.equations.attention_scores import attention_scores
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.linear import linear
from byhand.equations.matmul import matmul
from byhand.equations.mix import mix
from byhand.equations.mul import mul
from byhand.equations.softmax import softmax
from byhand.tracing.settled import settled_backward
from byhand.tracing.trace import Trace

WEIGHTS = {"W_Q": [[1, 0], [0, 1]], "W_K": [[0, 1], [1, 0]], "W_V": [[1, 1], [0, 1]]}
RATE = "1/10"


def given_weights(array: Maker) -> dict[str, Tensor]:
    """Return the weights that the example begins with."""
    return {n: Tensor(array(w), requires_grad=True, name=n) for n, w in WEIGHTS.items()}


def loss_of(weights: dict[str, Tensor], array: Maker, targets: tuple[int, ...] = (0,)) -> Tensor:
    """Return the loss of the core with these weights; one target is that of row 0."""
    x = Tensor(array([[[[1, 0], [0, 1]]]]), name="X")
    q, k, v = (linear(x, w, name=n) for n, w in zip("QKV", weights.values(), strict=True))
    attention = softmax(attention_scores(q, k, name="S"), name="P")
    rows = mix(attention, v, name="O")
    if len(targets) == 1:
        rows = matmul(Tensor(array([[[[1, 0]]]]), name="e_0"), rows, name="z")
    return cross_entropy(rows, Tensor(np.asarray([[targets]])), name="loss")


def lesson(array: Maker, targets: tuple[int, ...] = (0,)) -> Content:
    """One target trains row 0 alone; two targets train both rows."""
    weights = given_weights(array)
    trace = Trace.of(partial(loss_of, weights, array, targets))
    gradients = settled_backward(trace, array(1)).by_name
    intro = Words(
        "X, W_Q and W_K make each token look at the other one. The output rows serve as logits over two tokens.",
        "X、W_Q 与 W_K 使每个词元主要关注另一个词元。输出的各行直接当作两个词元上的 logits。",
    )
    steps = [*forward_steps(trace), *backward_steps(trace, array(1))]
    moved: dict[str, Tensor] = {}
    for name, new in descend(weights, gradients, array(RATE)):
        moved[name] = Tensor(new.result.data, name=f"{name}'")
        steps += forward_steps(new)
    with scope("after"):
        steps += forward_steps(Trace.of(partial(loss_of, moved, array, targets)))
    return intro, steps, (*given(trace), ("rate", RATE))


def descend(weights: dict[str, Tensor], gradients: dict[str, Any], rate: np.ndarray) -> Iterator[tuple[str, Trace]]:
    """Yield each weight's name and the trace of W - rate dW."""
    minus = Tensor(np.negative(rate, out=np.empty_like(rate)), name="−rate")

    def new(name: str) -> Tensor:
        slope = Tensor(gradients[name], name=f"∂{name}")
        return add(weights[name], mul(slope, minus, name=f"Δ{name}"), name=f"{name}'")

    for name in weights:
        yield name, Trace.of(partial(new, name))
