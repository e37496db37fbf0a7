"""Updates of weights: the learning rate of a run, two weights under AdamW, and clipping."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from byhand.book.lessons.examples import make
from byhand.book.lessons.examples.adamw import GRADIENTS, RATE, THETA
from byhand.book.numbers.arithmetic import decimal
from byhand.book.numbers.closed_form import array
from byhand.book.pictures.axes import Axes, legend
from byhand.book.pictures.canvas import BLUE, GREEN, GREY, RUST, SMALL, Canvas
from byhand.book.pictures.picture import picture, row, sentence
from byhand.book.words.language import Words
from byhand.clipping import clip_gradients, gradient_norm
from byhand.config import OptimConfig
from byhand.schedule import learning_rate as rate_of

STEPS = 2000  # of the presets tiny and nano, whose settings of the optimizer are the defaults
LONG_GRADIENT, CAP = {"w": [3.0], "b": [4.0]}, 1.0


def rates() -> dict[int, float]:
    """Return the learning rate at the first step, the peak, halfway down and at the end."""
    config = OptimConfig()
    return {step: rate_of(config, step, STEPS) for step in (0, config.warmup_steps, 1049, STEPS - 1)}


def schedule_in_words(lang: str) -> str:
    """Say the learning rate at four steps."""
    start = Words(
        f"Learning rate of {STEPS} steps: a linear warm-up, then a cosine. ",
        f"{STEPS} 步的学习率：先线性预热，再按余弦下降。",
    )
    step = Words("step {n}", "第 {n} 步")
    return sentence(lang, start, (row(lang, step.said(lang, n=n), [rate]) for n, rate in rates().items()))


@picture(Words("Learning rate: warm-up, then a cosine", "学习率：预热，然后按余弦下降"), schedule_in_words)
def learning_rate(canvas: Canvas) -> None:
    """The learning rate of every step of a preset."""
    config = OptimConfig()
    canvas.text(4, 14, Words("learning rate", "学习率"), size=SMALL, bold=True)
    axes = Axes(canvas, 48, 40, 334, 170, (0, STEPS), (0, config.lr))
    axes.x_ticks(range(0, STEPS + 1, 500), Words("step", "步"))
    axes.y_ticks((0, config.lr / 3, 2 * config.lr / 3, config.lr))
    steps = range(0, STEPS, 5)
    axes.curve([*steps, STEPS - 1], [rate_of(config, step, STEPS) for step in [*steps, STEPS - 1]], BLUE)
    axes.zero()
    first, peak, half, last = rates().items()
    axes.point(*peak, BLUE, Words(f"warm-up ends at step {peak[0]}", f"第 {peak[0]} 步：预热结束"), dy=-8)
    rate = decimal(half[1], 3)
    axes.point(*half, BLUE, Words(f"halfway: {rate}", f"一半处：{rate}"), dx=10, dy=-4)
    rate = decimal(last[1], 3)
    axes.point(*last, BLUE, Words(f"last: {rate}", f"最后：{rate}"), at="end", dx=-6, dy=14)
    axes.point(*first, BLUE, Words(f"first: {first[1]:.5f}", f"首步：{first[1]:.5f}"), dx=26, dy=-4)
    canvas.y = axes.bottom + 36


def paths() -> dict[str, np.ndarray]:
    """Return the lesson's two weights (steps, 2) under AdamW and under plain gradient descent."""
    theta = array(THETA)
    adam = [theta, *(step.arrays[0].data for step in make("adamw").steps)]
    plain = list(accumulate(map(array, GRADIENTS), lambda x, g: x - RATE * g, initial=theta))
    return {"AdamW": np.asarray(adam), "plain": np.asarray(plain)}


LABELS = (  # of plain gradient descent after each step: place of its number, for each weight
    (("end", -7.0, 12.0), ("end", -7.0, 12.0)),
    (("middle", 0.0, -9.0), ("start", 7.0, 4.0)),
)
PLAIN = Words("plain gradient descent", "普通梯度下降")
WEIGHT = Words("weight, gradients {first}, {second}", "权重，梯度 {first}、{second}")


def paths_in_words(lang: str) -> str:
    """Say both weights under both rules."""
    start = Words("Two steps of two weights with learning rate 0.1. ", "学习率为 0.1 时，两个权重的前两步更新。")
    names = {
        "AdamW": Words("weight {n} under AdamW", "AdamW 下的权重 {n}"),
        "plain": Words("weight {n} under plain gradient descent", "普通梯度下降下的权重 {n}"),
    }
    found = ((names[name].said(lang, n=n), way) for name, path in paths().items() for n, way in enumerate(path.T, 1))
    return sentence(lang, start, (row(lang, words, way, 4) for words, way in found))


@picture(Words("Two weights under AdamW", "AdamW 下的两个权重"), paths_in_words)
def adamw_steps(canvas: Canvas) -> None:
    """The two weights of the lesson `adamw`, whose gradients differ in size, under AdamW and plain descent."""
    for i in range(2):
        _panel(canvas, 8 + i * 192, i)
    canvas.y += 230
    legend(canvas, 20, canvas.y, "AdamW", BLUE)
    legend(canvas, 130, canvas.y, PLAIN, RUST, dashed=True)
    canvas.y += 24
    lines = (
        Words("The first step of AdamW is lr = 0.1 and the decay,", "AdamW 的第一步恒为学习率 0.1 加上权重衰减，"),
        Words("whatever the size of the gradient.", "与梯度大小无关。"),
    )
    canvas.text_lines(20, canvas.y, lines, 17, SMALL)
    canvas.y += 26


def _panel(canvas: Canvas, left: float, i: int) -> None:
    """Draw both ways of one weight."""
    gradients = [decimal(float(array(g)[i])) for g in GRADIENTS]
    words = WEIGHT.said(canvas.lang, first=gradients[0], second=gradients[1])
    canvas.text(left + 92, 16, words, at="middle", size=SMALL, bold=True)
    ways = {name: path[:, i] for name, path in paths().items()}
    low = float(min(way.min() for way in ways.values())) - 0.04
    axes = Axes(canvas, left + 28, 36, 116, 140, (0, 2), (low, low + 0.36))
    for step in range(3):
        axes.faint([(step, low), (step, low + 0.36)])
    axes.x_ticks(range(3), Words("step", "步"), lines=False)
    for (name, way), colour in zip(ways.items(), (BLUE, RUST), strict=True):
        axes.curve(range(3), way, colour, dashed=name != "AdamW")
        for step in (1, 2):
            at, dx, dy = LABELS[i][step - 1] if name != "AdamW" else ("start", 7.0, -5.0)
            axes.point(step, way[step], colour, decimal(float(way[step]), 4), at=at, dx=dx, dy=dy)
    start = float(array(THETA)[i])
    axes.point(0, start, GREY, decimal(start), at="end", dx=-8)


def clipped() -> tuple[float, float, list[float]]:
    """Return the norm of a gradient before and after clipping, and the clipped gradient."""
    gradients = {name: np.asarray(g) for name, g in LONG_GRADIENT.items()}
    after = clip_gradients(gradients, gradient_norm(gradients), CAP)
    return float(gradient_norm(gradients)), float(gradient_norm(after)), [float(g[0]) for g in after.values()]


def clipping_in_words(lang: str) -> str:
    """Say both gradients and their norms."""
    before, after, (x, y) = clipped()
    return Words(
        "The gradient (3, 4) of norm {before} is scaled to ({x}, {y}) of norm {after}: the direction is unchanged.",
        "范数为 {before} 的梯度 (3, 4) 被缩放为 ({x}, {y})，范数 {after}：方向不变。",
    ).said(lang, before=decimal(before, 4), after=decimal(after, 4), x=decimal(x, 4), y=decimal(y, 4))


@picture(Words("Clipping by the global norm", "按全局范数裁剪"), clipping_in_words)
def clipping(canvas: Canvas) -> None:
    """A gradient of two weights as an arrow, before and after clipping to norm 1."""
    before, after, (x, y) = clipped()
    unit = 40
    canvas.text(4, 14, Words("derivative with respect to weight 2", "对权重 2 的导数"), size=SMALL)
    axes = Axes(canvas, 32, 26, 4.5 * unit, 5.4 * unit, (-1.1, 3.4), (-1.1, 4.3))
    axes.x_ticks(range(-1, 4), Words("derivative with respect to weight 1", "对权重 1 的导数"))
    axes.y_ticks(range(-1, 5))
    canvas.ring(axes.x(0), axes.y(0), unit * CAP, line=GREEN, thick=1.5, dashed=True)
    (gx,), (gy,) = LONG_GRADIENT.values()
    canvas.arrow([(axes.x(0), axes.y(0)), (axes.x(gx), axes.y(gy))], colour=RUST, thick=2)
    canvas.arrow([(axes.x(0), axes.y(0)), (axes.x(x), axes.y(y))], colour=BLUE, thick=3)
    lines = (
        (Words("before: (3, 4)", "裁剪前：(3, 4)"), RUST),
        (Words(f"norm √(3² + 4²) = {decimal(before, 4)}", f"范数 √(3² + 4²) = {decimal(before, 4)}"), ""),
        (Words(f"after: ({decimal(x, 4)}, {decimal(y, 4)})", f"裁剪后：({decimal(x, 4)}, {decimal(y, 4)})"), BLUE),
        (Words(f"norm {decimal(after, 4)}", f"范数 {decimal(after, 4)}"), ""),
        (Words(f"the cap: norm {decimal(CAP)}", f"上限：范数 {decimal(CAP)}"), GREEN),
    )  # fmt: skip
    for line, (words, colour) in enumerate(lines):
        at = 60 + 22 * line
        if colour:
            legend(canvas, 222, at, words, colour, dashed=colour == GREEN)
        else:
            canvas.text(248, at, words, size=SMALL)
    canvas.y = axes.bottom + 38
