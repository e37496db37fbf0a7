"""The gradient through a layer with and without the residual stream around it, then through two layers."""

from functools import partial

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.examples.single import single, walked
from byhand.book.lessons.lesson import Content, Maker, grid, listed
from byhand.book.words.language import Words
from byhand.engine import Tensor
from byhand.equations.linear import linear
from byhand.equations.residual import residual
from byhand.tracing.trace import Trace

X, W, D_Y = [[2, -1]], [["1/2", 1], [-1, "3/2"]], [[1, 2]]
SLOPE = [["1/10"]]  # of each layer of the deep examples


@listed(230, "Residual connection: why the gradient survives depth", "残差连接：梯度为何能穿过很深的网络")
def lesson(array: Maker) -> Content:
    """One layer with the stream; then the backward pass of two layers, without the stream and with it."""
    intro = Words(
        "X' = X + XW: the stream X bypasses the layer. ∂X comes back along both paths, and the two parts add up. "
        "Then "
        "two layers in a row, each times w = 1/10: alone (g) they leave a hundredth of the gradient; with the "
        "stream (h), each multiplies it by 1 + 1/10 instead. Only the backward pass is shown there.",
        "X' = X + XW：残差流 X 绕过这一层。∂X 从两路传回，两份相加。"
        "然后是连续两层，每层都乘以 w = 1/10：没有残差流时（g），梯度只剩百分之一；有残差流时（h），每层使它乘以 1 + 1/10。那里只列出反向的步骤。",
    )
    w = Tensor(array(SLOPE), name="w")

    def one() -> Tensor:
        x = Tensor(array(X), requires_grad=True, name="X")
        return residual(x, linear(x, Tensor(array(W), requires_grad=True, name="W"), name="A"), name="X'")

    def deep(stream: bool) -> Tensor:
        letter = "h" if stream else "g"
        x = Tensor(array([[1]]), requires_grad=True, name=f"{letter}_0")
        for layer in (1, 2):
            name = f"{letter}_{layer}"
            a = linear(x, w, name=f"a_{layer}" if stream else name)
            x = residual(x, a, name=name) if stream else a
        return x

    trace, alone, beside = Trace.of(one), Trace.of(partial(deep, False)), Trace.of(partial(deep, True))
    return single(
        intro,
        walked(trace, array(D_Y)),
        ((("w", grid(w.data)), ("∂g_2", "[[1]]")), backward_steps(alone, array([[1]]))),
        ((("∂h_2", "[[1]]"),), backward_steps(beside, array([[1]]))),
    )
