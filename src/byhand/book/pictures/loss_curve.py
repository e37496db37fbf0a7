"""The loss of a real run, recorded once by `benchmarks/loss_curve.py`, with the text that the model generated."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import dot
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column
from byhand.book.pictures.scene.marks import Level, Mark, Polyline
from byhand.book.words.language import Words
from byhand.book.words.tables import table
from byhand.config import ModelConfig

RUN = Path(__file__).with_name("loss_curve.json")
CHANCE = math.log(ModelConfig().vocab_size)  # the loss of equal probabilities
NO_BREAK = "\N{NO-BREAK SPACE}"  # SVG drops spaces in a row


@cache
def recorded() -> dict[str, Any]:
    """Return the run of the loss curve as `benchmarks/loss_curve.py` recorded it."""
    return table(RUN)


def guesses(loss: float) -> str:
    """Return among how many equally likely bytes this loss would be a guess."""
    return decimal(round(math.exp(loss), 1 if loss < 3 else 0))


@scene("Validation loss of nano on Python's library", "预设 nano 在 Python 标准库上的验证损失")
def loss_curve() -> Column:
    """The validation loss of a real run, and the text that the model generated at five steps."""
    run = recorded()
    losses = {int(step): loss for step, loss in run["losses"].items()}
    chance = f"ln 256 = {decimal(round(CHANCE, 3))}"
    level = Level(CHANCE, Words(f"chance: {chance}", f"随机猜测：{chance}"))
    marks, stages = [], []
    for n, (step, written) in enumerate(run["samples"].items(), 1):
        loss = losses[int(step)]
        marks.append(Mark(int(step), loss, number=str(n), says=""))
        words = Words(
            f"step {step}: {loss:.2f} nats ≈ a guess among {guesses(loss)} bytes",
            f"第 {step} 步：{loss:.2f} 奈特 ≈ 在 {guesses(loss)} 个字节中猜",
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
