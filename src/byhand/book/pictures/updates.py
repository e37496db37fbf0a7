"""Updates of weights: the learning rate of a run, two weights under AdamW, and clipping."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from byhand.book.lessons.examples import make
from byhand.book.lessons.examples.adamw import GRADIENTS, RATE, THETA
from byhand.book.numbers.arithmetic import decimal
from byhand.book.numbers.closed_form import array
from byhand.book.pictures.canvas import BLUE, GREEN, GREY, RUST
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart, Circle, Mark, Polyline, Vector
from byhand.book.pictures.scene.elements import Across, Caption, Column, Key, Sign
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


@scene(
    Words("Learning rate: warm-up, then a cosine", "学习率：预热，然后按余弦下降"),
    Words(
        f"Learning rate of {STEPS} steps: a linear warm-up, then a cosine. ",
        f"{STEPS} 步的学习率：先线性预热，再按余弦下降。",
    ),
)
def learning_rate() -> Chart:
    """The learning rate of every step of a preset."""
    config, places = OptimConfig(), ("above right", "above right", "above right", "below left")
    steps = [*range(0, STEPS, 5), STEPS - 1]
    said = [
        Words("first: {rate:.5f}", "首步：{rate:.5f}"),
        Words("warm-up ends at step {step}: {short}", "第 {step} 步预热结束：{short}"),
        Words("halfway: {short}", "一半处：{short}"), Words("last: {short}", "最后：{short}"),
    ]  # fmt: skip
    marks = []
    for (step, rate), words, place in zip(rates().items(), said, places, strict=True):
        told = {"step": step, "rate": rate, "short": decimal(rate, 3)}
        words = Words(words.said("en", **told), words.said("zh", **told))
        says = Words(f"step {step}, {words.en}", f"第 {step} 步，{words.zh}")
        marks.append(Mark(step, rate, words, place, says=says))
    curve = Polyline(steps, [rate_of(config, step, STEPS) for step in steps])
    return Chart(
        (0, STEPS), (0, config.lr), [curve, *marks], 170, range(0, STEPS + 1, 500),
        (0, config.lr / 3, 2 * config.lr / 3, config.lr), Words("step", "步"), title=Words("learning rate", "学习率"),
    )  # fmt: skip


def paths() -> dict[str, np.ndarray]:
    """Return the lesson's two weights (steps, 2) under AdamW and under plain gradient descent."""
    theta = array(THETA)
    adam = [theta, *(step.arrays[0].data for step in make("adamw").steps)]
    plain = list(accumulate(map(array, GRADIENTS), lambda x, g: x - RATE * g, initial=theta))
    return {"AdamW": np.asarray(adam), "plain": np.asarray(plain)}


PLAIN = Words("plain gradient descent", "普通梯度下降")
PLACES = {  # of the numbers after each step, for each weight
    "AdamW": (("above right", "above right"), ("above right", "above right")),
    "plain": (("below left", "below left"), ("above", "right")),
}


@scene(
    Words("Two weights under AdamW", "AdamW 下的两个权重"),
    Words("Two steps of two weights with learning rate 0.1. ", "学习率为 0.1 时，两个权重的前两步更新。"),
)
def adamw_steps() -> Column:
    """The two weights of the lesson `adamw`, whose gradients differ in size, under AdamW and plain descent."""
    remark = Words(
        "The first step of AdamW is lr = 0.1 and the decay, whatever the size of the gradient.",
        "AdamW 的第一步恒为学习率 0.1 加上权重衰减，与梯度大小无关。",
    )
    key = Key([Sign("AdamW", BLUE, "line"), Sign(PLAIN, RUST, "dashed")], at="start")
    return Column([Across([_panel(0), _panel(1)], gap=0), key, Caption(remark)])


def _panel(i: int) -> Chart:
    """Return both ways of one weight."""
    first, second = (decimal(float(array(g)[i])) for g in GRADIENTS)
    ways = {name: path[:, i] for name, path in paths().items()}
    low, start = float(min(way.min() for way in ways.values())) - 0.04, float(array(THETA)[i])
    marks = [Mark(0, start, decimal(start), "left", GREY, says="")]
    curves = []
    for (name, way), colour in zip(ways.items(), (BLUE, RUST), strict=True):
        curves.append(Polyline(range(3), way, colour, dashed=name == "plain"))
        for step, value in enumerate(map(float, way[1:]), 1):
            marks.append(Mark(step, value, decimal(value, 4), PLACES[name][i][step - 1], colour, says=""))
        numbers = ", ".join(decimal(float(x), 4) for x in way)
        says = Words(
            f"{'AdamW' if name == 'AdamW' else PLAIN.en} {numbers}",
            f"{'AdamW' if name == 'AdamW' else PLAIN.zh} {numbers}",
        )
        marks.append(Mark(0, start, says=says, colour=GREY))
    return Chart(
        (-0.5, 2.9), (low, low + 0.36), [*curves, *marks], 140, range(3), (), Words("step", "步"), zero=False,
        title=Words(f"weight, gradients {first}, {second}", f"权重，梯度 {first}、{second}"), at="middle",
    )  # fmt: skip


def clipped() -> tuple[float, float, list[float]]:
    """Return the norm of a gradient before and after clipping, and the clipped gradient."""
    gradients = {name: np.asarray(g) for name, g in LONG_GRADIENT.items()}
    after = clip_gradients(gradients, gradient_norm(gradients), CAP)
    return float(gradient_norm(gradients)), float(gradient_norm(after)), [float(g[0]) for g in after.values()]


@scene(
    Words("Clipping by the global norm", "按全局范数裁剪"),
    Words("A gradient of two weights, clipped; its direction is unchanged. ", "两个权重的梯度经裁剪后，方向不变。"),
)
def clipping() -> Column:
    """A gradient of two weights as an arrow, before and after clipping to norm 1."""
    before, after, (x, y) = clipped()
    (gx,), (gy,) = LONG_GRADIENT.values()
    arrows = Vector((gx, gy), RUST), Vector((x, y), BLUE, 3)
    plot = Chart(
        (-1.1, 3.4), (-1.1, 4.3), [Circle(CAP, GREEN), *arrows], 216, range(-1, 4), range(-1, 5),
        Words("derivative with respect to weight 1", "对权重 1 的导数"), wide=206, says="", zero=False,
    )  # fmt: skip
    short, long = f"({decimal(x, 4)}, {decimal(y, 4)})", f"({decimal(gx)}, {decimal(gy)})"
    root = f"√(3² + 4²) = {decimal(before, 4)}"
    lines = (
        Words(f"before: {long}", f"裁剪前：{long}"), Words(f"norm {root}", f"范数 {root}"),
        Words(f"after: {short}", f"裁剪后：{short}"), Words(f"norm {decimal(after, 4)}", f"范数 {decimal(after, 4)}"),
        Words(f"the cap: norm {decimal(CAP)}", f"上限：范数 {decimal(CAP)}"),
    )  # fmt: skip
    colours = {0: Sign(lines[0], RUST, "line"), 2: Sign(lines[2], BLUE, "line"), 4: Sign(lines[4], GREEN, "dashed")}
    told = [Key([colours[i]], says=w, at="start") if i in colours else Caption(w) for i, w in enumerate(lines)]
    up = Caption(Words("derivative with respect to weight 2", "对权重 2 的导数"))
    return Column([up, Across([plot, Column(told)])])
