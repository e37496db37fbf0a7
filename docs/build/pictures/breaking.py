"""Training with a mistake: the curves of `byhand break`, each with the right one."""

from __future__ import annotations

import math

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, RUST
from byhand.book.pictures.picture import Picture
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.marks import Level, Polyline
from byhand.book.practice.catalogue import catalogue
from byhand.book.practice.effects import PER_POINT, chance, named
from byhand.book.words.language import Words

TYPICAL = (
    "causal_softmax.no_mask", "cross_entropy.no_target", "residual.no_stream", "adamw.bare_gradient", "layer_norm.only_divided",
)  # fmt: skip
TOP = 4.0


def _picture(name: str) -> Picture:
    mistake = next(mistake for mistake in catalogue() if mistake.name == name)

    def chart() -> Chart:
        (effect,) = named(name)
        assert effect.curve is not None
        assert effect.without is not None
        steps = [(i + 1) * PER_POINT for i in range(len(effect.without.losses))]
        right, wrong = (
            [math.nan if y is None or y > TOP else y for y in curve.losses]
            for curve in (effect.without, effect.curve)
        )
        level = Words(
            f"chance: ln V = {decimal(round(chance(), 2))}", f"随机猜测：ln V = {decimal(round(chance(), 2))}"
        )
        marks = [
            Level(chance(), level),
            Polyline(steps, right, BLUE, Words("right", "正确")),
            Polyline(steps, wrong, RUST, Words("with the mistake", "有此错误"), dashed=True),
        ]
        return Chart(
            (0, steps[-1]), (0, TOP), marks, 150, range(0, steps[-1] + 1, 40), range(5), Words("step", "步"),
            title=Words("loss", "损失"), said_at=(steps[-1],),
        )  # fmt: skip

    title = Words(f"Training with a mistake: {mistake.en}", f"带着错误训练：{mistake.zh}")
    return Picture(f"break-{name.replace('.', '-').replace('_', '-')}", title, chart)


no_mask, no_target, no_stream, bare_gradient, only_divided = map(_picture, TYPICAL)
