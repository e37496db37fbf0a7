"""Curves, bars and steps of functions: GELU and ReLU, cross-entropy, LayerNorm's derivative, AdamW."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from byhand.book.entries.layer_norm import entry
from byhand.book.lessons.examples import make
from byhand.book.lessons.examples.adamw import GRADIENTS, RATE, THETA
from byhand.book.numbers.arithmetic import decimal
from byhand.book.numbers.closed_form import array
from byhand.book.pictures.canvas import BLUE, GREEN, GREY, RUST, VIOLET
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import Key, Sign, told
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column
from byhand.book.pictures.scene.marks import Bars, Mark, Numbers, OnChart, Polyline
from byhand.book.words.language import Words
from byhand.engine import Equation, Tensor
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.gelu import gelu
from byhand.equations.layer_norm import layer_norm
from byhand.equations.relu import relu
from byhand.tracing.trace import Trace

LIMIT, POINTS = 4.0, 161  # from -4 to 4 in steps of 0.05
XS = np.round(np.linspace(-LIMIT, LIMIT, POINTS), 9)
AT = np.arange(-2.0, 3.0)  # x at which the alternative text gives values


def values(equation: Equation, xs: np.ndarray) -> np.ndarray:
    """Return the activation of numbers."""
    return equation.forward(xs)[0]


def slopes(equation: Equation, xs: np.ndarray) -> np.ndarray:
    """Return the derivative at numbers, by the vjp of a cotangent of 1."""
    return equation.vjp(equation.forward(xs)[1], np.ones_like(xs))[0]


def plot(marks: Sequence[OnChart], high: float, ys: tuple[float, float], y_ticks: Sequence[float],
         said_at: Numbers = AT) -> Chart:  # fmt: skip
    """Return a plot of activations from -4 to 4."""
    return Chart((-LIMIT, LIMIT), ys, marks, high, range(-4, 5), y_ticks, "x", said_at=said_at)


def mark(name: str, equation: Equation, x: float, place: str) -> Mark:
    """Return a point of an activation with its numbers."""
    y = float(values(equation, np.asarray([x]))[0])
    return Mark(x, y, f"{name}({decimal(x)}) = {decimal(round(y, 3))}", place)


@scene("GELU and ReLU as curves", "GELU 与 ReLU 的曲线")
def gelu_relu() -> Chart:
    """Both functions from -4 to 4, with GELU at -1 and 1."""
    marks = mark("GELU", gelu, -1, "below"), mark("GELU", gelu, 1, "below right")
    smooth = Words("GELU: bends smoothly", "GELU：光滑过渡")
    line = Polyline(XS, values(relu, XS), RUST, "ReLU = max(x, 0)")
    return plot([line, Polyline(XS, values(gelu, XS), BLUE, smooth), *marks], 220, (-0.6, LIMIT), range(5))


@scene("Slopes of GELU and ReLU", "GELU 与 ReLU 的斜率")
def gelu_relu_slopes() -> Chart:
    """Both derivatives from -4 to 4; that of ReLU jumps at 0."""
    xs = np.insert(XS, POINTS // 2 + 1, [1e-9, 2e-9])
    jump = Polyline(xs, np.where(xs == 1e-9, np.nan, slopes(relu, xs)), RUST,
                    Words("slope of ReLU: 0 or 1", "ReLU 的斜率：0 或 1"))  # fmt: skip
    curve = Polyline(XS, slopes(gelu, XS), BLUE, Words("slope of GELU", "GELU 的斜率"))
    marks = [
        Mark(x, y := float(slopes(gelu, np.asarray([x]))[0]), f"x = {decimal(x)}: {decimal(round(y, 3))}", place)
        for x, place in ((0.0, "right"), (1.0, "above"), (-1.0, "below right"))
    ]
    return plot([jump, curve, *marks], 190, (-0.25, 1.25), (0, 0.5, 1))


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


X, D_Y = array(entry.inputs["x"]), array(entry.d_result)
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
        plots.append(Chart((-0.5, len(numbers) - 0.5), ys, [bars], 88 * (ys[1] - ys[0]), under, title=words))
    return Column(plots)


def paths() -> dict[str, np.ndarray]:
    """Return the lesson's two weights (steps, 2) under AdamW and under plain gradient descent."""
    theta = array(THETA)
    adam = [theta, *(step.arrays[0].data for step in make("adamw").steps)]
    plain = list(accumulate(map(array, GRADIENTS), lambda x, g: x - RATE * g, initial=theta))
    return {"AdamW": np.asarray(adam), "plain": np.asarray(plain)}


WAYS = (  # their names, and the places of the numbers after each step, for each weight
    ("AdamW", BLUE, (("above right", "above right"), ("above right", "above right"))),
    (Words("plain gradient descent", "普通梯度下降"), RUST, (("below left", "below left"), ("above", "right"))),
)


@scene("Two steps of two weights with learning rate 0.1", "学习率为 0.1 时，两个权重的前两步更新")
def adamw_steps() -> Column:
    """The two weights of the lesson `adamw`, whose gradients differ in size, under AdamW and plain descent."""
    remark = Words(
        "The first step of AdamW is α = 0.1 and the decay, whatever the size of the gradient.",
        "AdamW 的第一步恒为 α = 0.1 加上权重衰减，与梯度大小无关。",
    )
    signs = [Sign(name, colour, "dashed" if colour == RUST else "line") for name, colour, _ in WAYS]
    return Column([Across([_panel(0), _panel(1)], gap=0), Key(signs, at="start"), Caption(remark)])


def _panel(i: int) -> Chart:
    """Return both ways of one weight."""
    first, second = (decimal(float(array(g)[i])) for g in GRADIENTS)
    found = [path[:, i] for path in paths().values()]
    low, start = float(np.min(found)) - 0.04, float(found[0][0])
    curves, marks = [], [Mark(0, start, decimal(start), "left", GREY, says="")]
    for (name, colour, places), way in zip(WAYS, found, strict=True):
        numbers = [decimal(float(x), 4) for x in way]
        curves.append(Polyline(range(3), way, colour, dashed=colour == RUST))
        marks.append(Mark(0, start, says=told(name, *numbers), colour=GREY))
        for step, place in enumerate(places[i], 1):
            marks.append(Mark(step, float(way[step]), numbers[step], place, colour, says=""))
    return Chart(
        (-0.5, 2.9), (low, low + 0.36), [*curves, *marks], 140, range(3), (), Words("step", "步"), zero=False,
        title=Words(f"gradients {first}, then {second}", f"一个权重，两步的梯度是 {first}、{second}"),
        at="middle",
    )  # fmt: skip
