"""The 2 x 2 matrix core: forward, the loss of row 0, every gradient, one step of gradient descent, the loss after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.changes import Choices, Given
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content, Maker, Step, listed
from byhand.book.lessons.roles import told
from byhand.book.practice.edits import Mistake
from byhand.book.words.language import Words
from byhand.engine import Equation, Tensor, scope
from byhand.equations.add import add
from byhand.equations.attention_scores import attention_scores
from byhand.equations.causal_softmax import causal_softmax
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
GIVEN: Given = {"X": [[1, 0], [0, 1]], **WEIGHTS, "y": [0], "rate": RATE, "causal": 0}
Forms = tuple[Equation, Equation]
FORMS: Forms = (softmax, cross_entropy)
CHOICES: Choices = {"y": (0, 1), "causal": (0, 1)}
FORGOTTEN = Words("forgot the learning rate", "忘了乘学习率")
UPHILL = Words("added rate times gradient; the update subtracts it", "加上了学习率与梯度的积；更新时应当减去")
ROLES = told(__file__, {"Q": "queries'", "K": "keys'", "V": "values'"})


def given_weights(array: Maker, start: Given = GIVEN) -> dict[str, Tensor]:
    """Return the weights that the example begins with."""
    return {n: Tensor(array(start[n]), requires_grad=True, name=n) for n in WEIGHTS}


def loss_of(weights: dict[str, Tensor], array: Maker, start: Given = GIVEN, forms: Forms = FORMS) -> Tensor:
    """Return the loss of the core with these weights; one target is that of row 0."""
    x = Tensor(array([[start["X"]]]), name="X")
    targets = np.asarray([[start["y"]]], dtype=np.int64)
    q, k, v = (linear(x, w, name=n) for n, w in zip("QKV", weights.values(), strict=True))
    weigh = causal_softmax if int(start["causal"]) else forms[0]
    rows = mix(weigh(attention_scores(q, k, name="S"), name="P"), v, name="O")
    if targets.size == 1:
        rows = matmul(Tensor(array([[[[1, 0]]]]), name="e_0"), rows, name="z")
    return forms[1](rows, Tensor(targets), name="loss")


@listed(30, "The 2 × 2 matrix core, trained on one row", "2 × 2 矩阵核心，用一行训练")
def lesson(array: Maker, start: Given = GIVEN, forms: Forms = FORMS) -> Content:
    """One target trains row 0 alone; two targets train both rows. `forms` of softmax and cross-entropy."""
    weights, rate = given_weights(array, start), start["rate"]
    trace = Trace.of(partial(loss_of, weights, array, start, forms))
    gradients = settled_backward(trace, array(1)).by_name
    intro = Words(
        "X, W_Q and W_K make each token look at the other one. The output rows serve as logits over two tokens.",
        "X、W_Q 与 W_K 使每个词元主要关注另一个词元。输出的各行直接当作两个词元上的 logits。",
    )
    steps = [*forward_steps(trace, ROLES), *backward_steps(trace, array(1))]
    moved: dict[str, Tensor] = {}
    for name, new, update in descend(weights, gradients, array(rate)):
        moved[name] = Tensor(new.result.data, name=f"{name}'")
        steps += update
    with scope("after"):
        steps += forward_steps(Trace.of(partial(loss_of, moved, array, start, forms)), ROLES)
    mask = (("causal", "1"),) if int(start["causal"]) else ()
    return intro, steps, (*given(trace), ("rate", rate), *mask)


def descend(
    weights: dict[str, Tensor], gradients: Mapping[str, Any], rate: np.ndarray, roles: Any = ROLES
) -> Iterator[tuple[str, Trace, list[Step]]]:
    """Yield each weight's name, the trace of W - rate dW, and its steps."""
    minus = Tensor(np.negative(rate, out=np.empty_like(rate)), name="−rate")

    def new(name: str) -> Tensor:
        slope = Tensor(gradients[name], name=f"∂{name}")
        return add(weights[name], mul(minus, slope, name=f"Δ{name}"), name=f"{name}'")

    for name, weight in weights.items():
        trace, slope = Trace.of(partial(new, name)), np.asarray(gradients[name], dtype=np.float64)
        before, step = np.asarray(weight.data, dtype=np.float64), float(rate) * slope
        change, update = forward_steps(trace, roles)
        wrong = [(FORGOTTEN, -slope)], [(FORGOTTEN, before - slope), (UPHILL, before + step)]
        yield name, trace, [_with_slips(*both) for both in zip((change, update), wrong, strict=True)]


def _with_slips(step: Step, wrong: list[tuple[Words, np.ndarray]]) -> Step:
    """Return a step of an update with the mistakes of updates: in words, and as the array that they lead to."""
    numbers = (
        replace(number, mistakes=tuple(Mistake(words.en, words.zh, float(x.flat[k])) for words, x in wrong))
        for k, number in enumerate(step.numbers)
    )
    return replace(step, numbers=tuple(numbers))
