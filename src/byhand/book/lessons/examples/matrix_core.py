"""The 2 x 2 matrix core: forward, the loss of row 0, every gradient, one step of gradient descent, the loss after."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.changes import Choices, Given
from byhand.book.lessons.examples import Maker
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content
from byhand.book.lessons.roles import Role
from byhand.book.words.language import Words
from byhand.engine import Tensor, scope
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
CHOICES: Choices = {"y": (0, 1), "causal": (0, 1)}
ROLES: dict[tuple[str, ...], Role] = {
    ("linear", "Q"): Role(
        Words("queries", "查询"),
        Words("Give each token a query: what it looks for.", "给每个词元一个查询：它在找什么。"),
        Words(
            "Queries, keys and values are three views of the same tokens, each with its own weights. A token can "
            "be found by one property and pass on another.",
            "查询、键、值是同一批词元的三种表示，各有自己的权重。因此一个词元可以凭一种特征被找到，却交出另一种内容。",
        ),
    ),
    ("linear", "K"): Role(
        Words("keys", "键"),
        Words("Give each token a key: what it can be found by.", "给每个词元一个键：其他词元凭哪些特征找到它。"),
        Words(
            "Every key meets every query in a dot product, so both have the same number of columns.",
            "每个键都要与每个查询做点积，所以两者的列数相同。",
        ),
    ),
    ("linear", "V"): Role(
        Words("values", "值"),
        Words(
            "Give each token a value: what it passes on when it is found.", "给每个词元一个值：被找到时交出的内容。"
        ),
        Words(
            "A score decides how much of a value is used, never what it contains. The content has its own weights.",
            "分数只决定取多少，不决定取到什么；内容由单独的权重产生。",
        ),
    ),
    ("matmul", "z"): Role(
        Words("the row of logits", "用来预测的一行"),
        Words(
            "Take row 0 of the output as logits: a score for each of two tokens. Here column 0 stands for token 0 "
            "and column 1 for token 1.",
            "取输出的第 0 行作为 logits：两个词元各一个分数。这里第 0 列对应词元 0，第 1 列对应词元 1。",
        ),
        Words(
            "A real model has one more weight matrix here, the LM head. It turns the columns into a score for each "
            "token of the vocabulary. This example leaves it out.",
            "真实的模型在这里还有一个权重，即语言模型头，把各列变成词表中每个词元的分数。这个核心例子省去了它。",
        ),
    ),
}
for _letter, _role in (("Q", "queries'"), ("K", "keys'"), ("V", "values'")):
    ROLES["mul", f"ΔW_{_letter}"] = Role(
        Words(f"the change of W_{_letter}", f"W_{_letter} 的改变量"),
        Words(
            f"Turn the gradient of the {_role} weight into a step: minus the learning rate times the gradient.",
            f"由 W_{_letter} 的梯度得到改变量：负的学习率乘以梯度。",
        ),
        Words(
            "Drawn as one arrow, all gradients together point where the loss grows fastest (take this on trust), so "
            "the step goes the opposite way. The learning rate keeps it short: a gradient is accurate only near the "
            "point where it was computed.",
            "梯度指向损失增大最快的方向（这一点请先接受），所以权重沿反方向更新。学习率使步长保持很小：梯度只在计算它的那一点附近才准确。",
        ),
    )
    ROLES["add", f"W_{_letter}'"] = Role(
        Words(f"the new W_{_letter}", f"新的 W_{_letter}"),
        Words(f"Update W_{_letter}.", f"更新 W_{_letter}。"),
        Words(
            "All weights are updated together, each with its own gradient of the same loss.",
            "所有权重同时更新，用的都是同一个损失对各自的梯度。",
        ),
    )


def given_weights(array: Maker, start: Given = GIVEN) -> dict[str, Tensor]:
    """Return the weights that the example begins with."""
    return {n: Tensor(array(start[n]), requires_grad=True, name=n) for n in WEIGHTS}


def loss_of(weights: dict[str, Tensor], array: Maker, start: Given = GIVEN) -> Tensor:
    """Return the loss of the core with these weights; one target is that of row 0."""
    x = Tensor(array([[start["X"]]]), name="X")
    targets = np.asarray([[start["y"]]], dtype=np.int64)
    q, k, v = (linear(x, w, name=n) for n, w in zip("QKV", weights.values(), strict=True))
    weigh = causal_softmax if int(start["causal"]) else softmax
    rows = mix(weigh(attention_scores(q, k, name="S"), name="P"), v, name="O")
    if targets.size == 1:
        rows = matmul(Tensor(array([[[[1, 0]]]]), name="e_0"), rows, name="z")
    return cross_entropy(rows, Tensor(targets), name="loss")


def lesson(array: Maker, start: Given = GIVEN) -> Content:
    """One target trains row 0 alone; two targets train both rows."""
    weights, rate = given_weights(array, start), start["rate"]
    trace = Trace.of(partial(loss_of, weights, array, start))
    gradients = settled_backward(trace, array(1)).by_name
    intro = Words(
        "X, W_Q and W_K make each token look at the other one. The output rows serve as logits over two tokens.",
        "X、W_Q 与 W_K 使每个词元主要关注另一个词元。输出的各行直接当作两个词元上的 logits。",
    )
    steps = [*forward_steps(trace, ROLES), *backward_steps(trace, array(1))]
    moved: dict[str, Tensor] = {}
    for name, new in descend(weights, gradients, array(rate)):
        moved[name] = Tensor(new.result.data, name=f"{name}'")
        steps += forward_steps(new, ROLES)
    with scope("after"):
        steps += forward_steps(Trace.of(partial(loss_of, moved, array, start)), ROLES)
    mask = (("causal", "1"),) if int(start["causal"]) else ()
    return intro, steps, (*given(trace), ("rate", rate), *mask)


def descend(weights: dict[str, Tensor], gradients: dict[str, Any], rate: np.ndarray) -> Iterator[tuple[str, Trace]]:
    """Yield each weight's name and the trace of W - rate dW."""
    minus = Tensor(np.negative(rate, out=np.empty_like(rate)), name="−rate")

    def new(name: str) -> Tensor:
        slope = Tensor(gradients[name], name=f"∂{name}")
        return add(weights[name], mul(minus, slope, name=f"Δ{name}"), name=f"{name}'")

    for name in weights:
        yield name, Trace.of(partial(new, name))
