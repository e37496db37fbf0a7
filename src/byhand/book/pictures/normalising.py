"""LayerNorm's derivative: it removes the gradient's mean and its part along the normalised row."""

from __future__ import annotations

import numpy as np

from byhand.book.entries.layer_norm import entry
from byhand.book.numbers.arithmetic import decimal
from byhand.book.numbers.closed_form import array
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, VIOLET
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.groups import Column
from byhand.book.pictures.scene.marks import Bars
from byhand.book.words.language import Words
from byhand.engine import Tensor
from byhand.equations.layer_norm import layer_norm
from byhand.tracing.trace import Trace

X, D_Y = array(entry.inputs["x"]), array(entry.d_result)
HIGH = 88  # pixels of one
ROWS = (
    (Words("gradient of x_norm", "x_norm 的梯度"), BLUE),
    (Words("− its mean: a shift of x changes nothing", "− 均值：x 整体平移不改变结果"), RUST),
    (
        Words(
            "− x_norm × avg(gradient · x_norm): nor does a stretch",
            "− x_norm × 均值(梯度 · x_norm)：伸缩也不改变结果",
        ),
        RUST,
    ),
    (Words("= what is left", "= 剩下的部分"), GREEN),
    (Words("÷ standard deviation 5: gradient of x", "÷ 标准差 5：x 的梯度"), VIOLET),
)


def parts() -> dict[str, np.ndarray]:
    """Return h, its mean, its part along the normalised row, the remainder, and the derivative of x, each (C,)."""
    x, found = Tensor(X, requires_grad=True, name="x"), []
    gradients = Trace.of(lambda: layer_norm(x, eps=0.0)).backward(D_Y)
    for c in range(X.shape[-1]):
        (use,) = gradients.answer("x", (0, c)).uses
        _, left = use.term.parts  # 1 / std, and h − its mean − its part along x̂
        h, mean, along = (part.value for part in left.parts)
        found.append((h, -mean, -along, left.value, use.term.value))
    return dict(zip(("h", "mean", "along", "left", "d_x"), np.array(found).T, strict=True))


@scene("What LayerNorm's derivative removes: 1, 7, 9, 15", "层归一化的导数去掉了什么：1、7、9、15")
def layer_norm_removes() -> Column:
    """The gradient of four columns, the two parts that are removed, and the remainder, one below the other."""
    plots = []
    for (words, colour), numbers in zip(ROWS, parts().values(), strict=True):
        ys = min(0.0, float(numbers.min())), max(0.0, float(numbers.max()))
        under = {c: f"x = {decimal(float(x))}" for c, x in enumerate(X[0])} if colour == VIOLET else ()
        bars = Bars(np.round(numbers, 9), colour, 4)
        plots.append(Chart((-0.5, len(numbers) - 0.5), ys, [bars], HIGH * (ys[1] - ys[0]), under, title=words))
    return Column(plots)
