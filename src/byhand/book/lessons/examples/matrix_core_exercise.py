"""A stand-alone exercise: from a prediction of 0.7 and 0.3 to the change of W_V.

The prediction comes from no model, but the arithmetic from there on is right. Its logits are the logarithms of the
probabilities, and the attention weights are those of the matrix core's first row.
"""

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.examples.matrix_core import RATE, ROLES, WEIGHTS, descend
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content, Maker, listed
from byhand.book.words.language import Words
from byhand.engine import Tensor
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.linear import linear
from byhand.equations.matmul import matmul
from byhand.equations.softmax import softmax
from byhand.tracing.settled import settled_backward
from byhand.tracing.trace import Trace


@listed(50, "Stand-alone exercise: from a prediction to new value weights", "独立练习：由预测求出值的新权重")
def lesson(array: Maker) -> Content:
    """Loss and its gradient for the given prediction; then back through the weighted sum into W_V."""
    logits = Tensor(array([["log(7/10)", "log(3/10)"]]), requires_grad=True, name="z")
    first = Trace.of(lambda: cross_entropy(logits, Tensor(np.asarray([0])), name="loss"))
    weight = Tensor(array(WEIGHTS["W_V"]), requires_grad=True, name="W_V")
    x, scores = Tensor(array([[1, 0], [0, 1]]), name="X"), Tensor(array([[0, "1/sqrt(2)"]]), name="S")

    def output() -> Tensor:
        return matmul(softmax(scores, name="P"), linear(x, weight, name="V"), name="O")

    second = Trace.of(output)
    d_output = array([["-3/10", "3/10"]])
    gradients = settled_backward(second, d_output).by_name
    intro = Words(
        "Suppose the model predicts 0.7 and 0.3, and token 0 is right. "
        "The gradient of the logits, −0.3 and 0.3, is used as the gradient of the output row and followed back to W_V.",
        "假设模型给出 0.7 与 0.3，而正确的是词元 0。把 logits 的梯度 −0.3 与 0.3 直接当作输出这一行的梯度，再传到 W_V。",
    )
    steps = (
        *forward_steps(first, ROLES),
        *backward_steps(first, array(1)),
        *forward_steps(second, ROLES),
        *backward_steps(second, d_output),
        *(step for *_, update in descend({"W_V": weight}, gradients, array(RATE)) for step in update),
    )
    start = (*given(first), *given(second), ("rate", RATE))
    return intro, steps, start
