"""The loss of a real run, recorded once by `benchmarks/loss_curve.py`, with the text that the model generated."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.axes import Axes
from byhand.book.pictures.canvas import BLUE, RUST, SMALL, TINY, WHITE, Canvas
from byhand.book.pictures.picture import picture, sentence
from byhand.book.words.language import Words
from byhand.config import ModelConfig

RUN = Path(__file__).with_name("loss_curve.json")
CHANCE = math.log(ModelConfig().vocab_size)  # the loss of equal probabilities
NO_BREAK = "\N{NO-BREAK SPACE}"
MONOSPACE = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@cache
def recorded() -> dict[str, Any]:
    """Return the run of the loss curve as `benchmarks/loss_curve.py` recorded it."""
    return json.loads(RUN.read_text(encoding="utf-8"))


def guesses(loss: float) -> str:
    """Return among how many equally likely bytes this loss would be a guess."""
    return decimal(round(math.exp(loss), 1 if loss < 3 else 0))


def loss_in_words(lang: str) -> str:
    """Say the loss of each stage with its meaning."""
    run = recorded()
    start = Words(
        "Validation loss of the preset nano on Python's library. ", "预设 nano 在 Python 标准库上的验证损失。"
    )
    words = Words("step {n}: {loss} nats, a guess among {g} bytes", "第 {n} 步：{loss} 奈特，相当于在 {g} 个字节中猜")
    losses = {step: run["losses"][step] for step in run["samples"]}
    return sentence(lang, start, (words.said(lang, n=n, loss=x, g=guesses(x)) for n, x in losses.items()))


@picture(Words("What a falling loss means", "损失下降意味着什么"), loss_in_words)
def loss_curve(canvas: Canvas) -> None:
    """The validation loss of a real run, and the text that the model generated at five steps."""
    run = recorded()
    losses = {int(step): loss for step, loss in run["losses"].items()}
    canvas.text(4, 16, Words("loss in nats, on text not trained on", "验证集上的损失（奈特）"), size=SMALL, bold=True)
    axes = Axes(canvas, 34, 30, 352, 190, (0, max(losses)), (0, 6))
    axes.x_ticks(range(0, max(losses) + 1, 500), Words("step", "步"))
    axes.y_ticks(range(0, 7, 2))
    axes.level(CHANCE, RUST, dashed=True)
    chance = f"ln 256 = {decimal(round(CHANCE, 3))}"
    words = Words(f"chance: {chance}", f"随机猜测：{chance}")
    canvas.text(axes.right, axes.y(CHANCE) + 16, words, at="end", size=TINY)
    axes.zero()
    axes.curve(losses, losses.values(), BLUE)
    for number, step in enumerate(map(int, run["samples"]), 1):
        _number(canvas, axes.x(step), axes.y(losses[step]), number)
    canvas.y = axes.bottom + 48
    what = Words("“def ” continued at each step (·: no printable byte)", "各步时续写“def ”（· 表示不可显示的字节）")
    canvas.text(4, canvas.y, what, size=SMALL)
    canvas.y += 10
    for number, (step, written) in enumerate(run["samples"].items(), 1):
        _stage(canvas, number, int(step), losses[int(step)], written)


def _stage(canvas: Canvas, number: int, step: int, loss: float, written: str) -> None:
    _number(canvas, 14, canvas.y + 15, number)
    among = guesses(loss)
    words = Words(
        f"step {step}: {loss:.2f} nats ≈ a guess among {among} bytes",
        f"第 {step} 步：{loss:.2f} 奈特 ≈ 在 {among} 个字节中猜",
    )
    canvas.text(30, canvas.y + 19, words, size=SMALL)
    canvas.add(f'<g font-family="{MONOSPACE}">')
    canvas.text(30, canvas.y + 37, f"def {written}".replace(" ", NO_BREAK), size=SMALL)  # SVG drops spaces in a row
    canvas.add("</g>")
    canvas.y += 46


def _number(canvas: Canvas, x: float, y: float, number: int) -> None:
    """Draw the number of a stage in a filled circle."""
    canvas.dot(x, y, 8, BLUE)
    canvas.text(x, y + 4, str(number), colour=WHITE, at="middle", size=TINY, bold=True)
