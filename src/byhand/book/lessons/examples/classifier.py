"""A classifier of four pictures of 2 x 2 pixels: forward, loss, every gradient, one AdamW step, the loss after.

The four bars need the hidden layer: both vertical ones together light the same pixels as both horizontal ones.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.forward_steps import forward_steps, given, update_step
from byhand.book.lessons.lesson import Content, Maker, listed, number_text
from byhand.book.lessons.roles import told
from byhand.book.words.language import Words
from byhand.engine import Tensor, scope
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.linear import linear
from byhand.equations.relu import relu
from byhand.tracing.settled import settled_backward, settled_trace

PICTURES = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]  # left and right column, top and bottom row
CLASSES = [0, 0, 1, 1]  # 0 is a vertical bar, 1 a horizontal one
WEIGHTS = {
    "W_1": [[-1, 1], [1, -1], [-1, 1], [1, -1]],
    "b_1": [1, 1],
    "W_2": [["log(2)", 0], ["log(2)", 0]],
    "b_2": [0, 0],
}
OPTIMIZER = {"beta1": 0.9, "beta2": 0.999, "eps": 0.0, "weight_decay": 0.0}
RATE = 0.1
ROLES = told(__file__)


def given_weights(array: Maker) -> dict[str, Tensor]:
    """Return the parameters that the example begins with."""
    return {name: Tensor(array(w), requires_grad=True, name=name) for name, w in WEIGHTS.items()}


def loss_of(p: dict[str, Tensor], array: Maker) -> Tensor:
    """Return the mean loss of the four pictures."""
    a = linear(Tensor(array(PICTURES), name="X"), p["W_1"], p["b_1"], name="a")
    z = linear(relu(a, name="h"), p["W_2"], p["b_2"], name="z")
    return cross_entropy(z, Tensor(np.asarray(CLASSES), name="y"), name="L")


@listed(210, "A classifier of four tiny pictures, trained for one step", "四张小图的分类器，训练一步")
def lesson(array: Maker) -> Content:
    """One training step on all four pictures."""
    weights = given_weights(array)
    trace = settled_trace(partial(loss_of, weights, array))
    gradients = settled_backward(trace, array(1)).by_name
    steps = [*forward_steps(trace, ROLES), *backward_steps(trace, array(1))]
    new: dict[str, Tensor] = {}
    for name, p in weights.items():
        zero = p.data * 0
        step, (theta, *_) = update_step(name, p.data, gradients[name], zero, zero, RATE, 1, **OPTIMIZER)
        steps.append(step)
        new[name] = Tensor(theta, name=f"{name}'")
    with scope("after"):
        steps += forward_steps(settled_trace(partial(loss_of, new, array)), ROLES)
    intro = Words(
        "Each row of X is a picture of 2 × 2 pixels: top left, top right, bottom left, bottom right. "
        "Rows 0 and 1 are vertical bars (class 0), rows 2 and 3 horizontal ones (class 1). "
        "Hidden unit 0 responds to the right column, unit 1 to the left one; at first each active unit adds to the score of class 0. "
        "ε_AdamW is 0 to keep the numbers simple.",
        "X 的每一行是一张 2 × 2 像素的图，依次为左上、右上、左下、右下。第 0、1 行是竖线（类别 0），第 2、3 行是横线（类别 1）。"
        "隐藏单元 0 对右列有反应，单元 1 对左列有反应；起初，每个激活的单元都给类别 0 加分。为了数字整齐，取 ε_AdamW = 0。",
    )
    start = (*given(trace), *((n, number_text(x)) for n, x in (("lr", RATE), *OPTIMIZER.items())))
    return intro, steps, start
