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
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import Key, Sign, told
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column
from byhand.book.pictures.scene.marks import Circle, Mark, Polyline, Vector
from byhand.book.words.language import Words
from byhand.clipping import clip_gradients, gradient_norm
from byhand.config import OptimConfig
from byhand.schedule import learning_rate as rate_of

STEPS = 2000  # of the presets tiny and nano, whose settings of the optimizer are the defaults
LONG_GRADIENT, CAP = {"w": [3.0], "b": [4.0]}, 1.0


def rates() -> dict[int, float]:
    """Return the learning rate of the first update, the peak, halfway down and the last, counted from 1."""
    config = OptimConfig()
    halfway = (config.warmup_steps + STEPS) // 2 + 1
    return {n: rate_of(config, n - 1, STEPS) for n in (1, config.warmup_steps, halfway, STEPS)}


@scene(f"Learning rate of {STEPS} steps: warm-up, then a cosine", f"{STEPS} 步的学习率：先线性预热，再按余弦下降")
def learning_rate() -> Chart:
    """The learning rate of every step of a preset."""
    config, updates = OptimConfig(), [*range(1, STEPS, 5), STEPS]
    places = "above right", "above right", "below left", "below left"
    said = (
        Words("", ""),
        Words(", warm-up ends", "，预热结束"),
        Words(", halfway", "，一半处"),
        Words(", last", "，最后"),
    )
    marks = [
        Mark(n, rate, Words(f"update {n}{at.en}: {short(rate)}", f"第 {n} 次{at.zh}：{short(rate)}"), place)
        for (n, rate), at, place in zip(rates().items(), said, places, strict=True)
    ]
    curve = Polyline(updates, [rate_of(config, n - 1, STEPS) for n in updates])
    return Chart(
        (0, STEPS), (0, config.lr), [curve, *marks], 170, range(0, STEPS + 1, 500),
        (0, config.lr / 3, 2 * config.lr / 3, config.lr), Words("update", "更新"),
        title=Words("learning rate", "学习率"),
    )  # fmt: skip


def short(rate: float) -> str:
    """Write a learning rate without a power of ten."""
    return f"{rate:.5f}".rstrip("0")


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


def clipped() -> tuple[float, float, list[float]]:
    """Return the norm of a gradient before and after clipping, and the clipped gradient."""
    gradients = {name: np.asarray(g) for name, g in LONG_GRADIENT.items()}
    after = clip_gradients(gradients, gradient_norm(gradients), CAP)
    return float(gradient_norm(gradients)), float(gradient_norm(after)), [float(g[0]) for g in after.values()]


@scene("A gradient of two weights, clipped by its norm", "两个权重的梯度按全局范数裁剪")
def clipping() -> Column:
    """A gradient of two weights as an arrow, before and after clipping to norm 1."""
    before, after, (x, y) = clipped()
    (gx,), (gy,) = LONG_GRADIENT.values()
    up, right = (Words(f"derivative with respect to weight {i}", f"对权重 {i} 的导数") for i in (2, 1))
    plot = Chart(
        (-1.1, 3.4), (-1.1, 4.3), [Circle(CAP, GREEN), Vector((gx, gy), RUST), Vector((x, y), BLUE, 3)], 216,
        range(-1, 4), range(-1, 5), right, wide=206, says="", zero=False,
    )  # fmt: skip
    short, long, root = f"({decimal(x, 4)}, {decimal(y, 4)})", f"({decimal(gx)}, {decimal(gy)})", decimal(before, 4)
    lines = [
        _sign(Words(f"before: {long}", f"裁剪前：{long}"), RUST),
        Caption(Words(f"norm √(3² + 4²) = {root}", f"范数 √(3² + 4²) = {root}")),
        _sign(Words(f"after: {short}", f"裁剪后：{short}"), BLUE),
        Caption(Words(f"norm {decimal(after, 4)}", f"范数 {decimal(after, 4)}")),
        Caption(Words("the direction stays", "方向不变"), says=Words("the direction stays", "方向不变")),
        _sign(Words(f"the cap: norm {decimal(CAP)}", f"上限：范数 {decimal(CAP)}"), GREEN, "dashed"),
    ]
    axes = Words(f"{right.en} across, weight 2 up", f"横轴：{right.zh}，纵轴：{up.zh}")
    return Column([Caption(up, says=axes), Across([plot, Column(lines)])])


def _sign(words: Words, colour: str, kind: str = "line") -> Key:
    return Key([Sign(words, colour, kind)], at="start", says=words)
