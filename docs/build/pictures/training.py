"""A run: its learning rate, the clipping of a gradient, and the loss of a real one."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import Key, Sign, dot
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column
from byhand.book.pictures.scene.marks import Circle, Level, Mark, Polyline, Vector
from byhand.book.words.language import Words
from byhand.book.words.tables import table
from byhand.clipping import clip_gradients, gradient_norm
from byhand.config import ModelConfig, OptimConfig
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
    named = ("", ""), (", warm-up ends", "，预热结束"), (", halfway", "，一半处"), (", last", "，最后")
    marks = [
        Mark(n, rate, Words(f"update {n}{en}: {short(rate)}", f"第 {n} 次{zh}：{short(rate)}"), place)
        for (n, rate), (en, zh), place in zip(rates().items(), named, places, strict=True)
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
    stays = Words("the direction stays", "方向不变")
    lines = [
        _sign(Words(f"before: {long}", f"裁剪前：{long}"), RUST),
        Caption(Words(f"norm √(3² + 4²) = {root}", f"范数 √(3² + 4²) = {root}")),
        _sign(Words(f"after: {short}", f"裁剪后：{short}"), BLUE),
        Caption(Words(f"norm {decimal(after, 4)}", f"范数 {decimal(after, 4)}")),
        Caption(stays, says=stays),
        _sign(Words(f"the cap: norm {decimal(CAP)}", f"上限：范数 {decimal(CAP)}"), GREEN, "dashed"),
    ]
    axes = Words(f"{right.en} across, weight 2 up", f"横轴：{right.zh}，纵轴：{up.zh}")
    return Column([Caption(up, says=axes), Across([plot, Column(lines)])])


def _sign(words: Words, colour: str, kind: str = "line") -> Key:
    return Key([Sign(words, colour, kind)], at="start", says=words)


RUN = Path(__file__).with_name("loss_curve.json")  # recorded once by benchmarks/loss_curve.py
CHANCE = math.log(ModelConfig().vocab_size)  # the loss of equal probabilities
NO_BREAK = "\N{NO-BREAK SPACE}"  # SVG drops spaces in a row


@scene("Validation loss of nano on Python's library", "预设 nano 在 Python 标准库上的验证损失")
def loss_curve() -> Column:
    """The validation loss of a real run, and the text that the model generated at five steps."""
    run = table(RUN)
    losses = {int(step): loss for step, loss in run["losses"].items()}
    chance = f"ln 256 = {decimal(round(CHANCE, 3))}"
    level = Level(CHANCE, Words(f"chance: {chance}", f"随机猜测：{chance}"))
    marks, stages = [], []
    for n, (step, written) in enumerate(run["samples"].items(), 1):
        loss = losses[int(step)]
        marks.append(Mark(int(step), loss, number=str(n), says=""))
        likely = decimal(round(math.exp(loss), 1 if loss < 3 else 0))  # bytes, all equally
        words = Words(
            f"step {step}: {loss:.2f} nats ≈ a guess among {likely} bytes",
            f"第 {step} 步：{loss:.2f} 奈特 ≈ 在 {likely} 个字节中猜",
        )
        text = Caption(f"def {written}".replace(" ", NO_BREAK), mono=True, says="")
        stages.append(
            Across([dot(str(n), radius=8), Column([Caption(words), text], gap=2)], widths=(18, None), top=True)
        )
    plot = Chart(
        (0, max(losses)), (0, 6), [level, Polyline(list(losses), list(losses.values())), *marks], 190,
        range(0, max(losses) + 1, 500), range(0, 7, 2), Words("step", "步"),
        title=Words("loss in nats, on text not trained on", "验证集上的损失（奈特）"),
    )  # fmt: skip
    what = Words(
        "how the model of each step continues “def ” (·: no printable byte)",
        "模型在各步对“def ”的续写（· 表示不可显示的字节）",
    )
    return Column([plot, Caption(what), *stages])
