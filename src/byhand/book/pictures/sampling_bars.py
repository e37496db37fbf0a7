"""Sampling: the probabilities of four logits under temperature, top-k and top-p, as bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byhand.book.lessons.examples.sampling import LOGITS, TAU, K
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Bars, Chart, Level, Mark, Polyline
from byhand.book.pictures.scene.elements import Across, Caption, Column, Key, Sign, heading
from byhand.book.words.language import Said, Words
from byhand.equations.softmax import softmax
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.equations.top_p import top_p

P, LOWER_P = 0.9, 0.6  # of top-p: three tokens stay, and one
Z = np.asarray(LOGITS, dtype=float)
UNDER = {v: decimal(float(z)) for v, z in enumerate(Z)}
Setting = tuple[Words, np.ndarray]  # what it is called, and its probabilities


def by_temperature() -> list[Setting]:
    """Return the probabilities at half the usual temperature, at 1, and at the lesson's."""
    return [
        _setting(f"temperature {decimal(tau)}", f"温度 {decimal(tau)}", temperature.forward(Z, tau=tau)[0])
        for tau in (0.5, 1.0, TAU)
    ]


def by_top_k() -> list[Setting]:
    """Return the probabilities without top-k, with the lesson's k, and with k = 1."""
    n = len(Z)
    kept = (_setting(f"k = {k}", f"k = {k}", top_k.forward(Z, k=k)[0]) for k in (K, 1))
    return [_setting(f"k = {n} (all)", f"k = {n}（全部）", top_k.forward(Z, k=n)[0]), *kept]


def by_top_p() -> list[Setting]:
    """Return the probabilities without top-p, and with two values of it."""
    kept = (_setting(f"p = {p}", f"p = {p}", top_p.forward(Z, p=p)[0]) for p in (P, LOWER_P))
    return [_setting("p = 1 (all)", "p = 1（全部）", Z), *kept]


def _setting(en: str, zh: str, logits: np.ndarray) -> Setting:
    return Words(en, zh), softmax.forward(logits)[0]


def _panels(
    settings: Sequence[Setting], remarks: Sequence[Said], shows: Sequence[str]
) -> list[Column | Across | Caption]:
    """Return the settings side by side, each with a remark below it, and the lesson's array that it is."""
    plots = [
        Chart((-0.5, len(p) - 0.5), (0, 1), [Bars(p, words=[_short(float(x)) for x in p])], 110, UNDER, (), remark,
             title=words, at="middle", shows=name)
        for (words, p), remark, name in zip(settings, remarks, shows, strict=True)
    ]  # fmt: skip
    below = Words("Below each bar: the logit of the token", "柱下是该词元的 logit")
    return [Across(plots, gap=2), Caption(below, at="middle")]


def _short(x: float) -> str:
    """Write a probability with at most three digits after the point, in little room."""
    return "0" if not x else decimal(round(x, 3)) if round(x, 3) else "0.000"


@scene(
    Words("Softmax under temperature", "温度如何改变 softmax"),
    Words(
        "Softmax of the logits 2, 1, 0, −1 at three temperatures. ",
        "logits 2、1、0、−1 在三种温度下的 softmax 概率。",
    ),
)
def softmax_temperature() -> Column:
    """The same logits at a low temperature, at 1, and at a high one."""
    remarks = Words("sharper", "更尖锐"), Words("as trained", "训练时"), Words("flatter", "更平缓")
    return Column(_panels(by_temperature(), remarks, ("", "p", "p'")))


@scene(
    Words("Softmax under top-k", "top-k 截断之后的 softmax"),
    Words("Probabilities of the logits 2, 1, 0, −1 after top-k. ", "logits 2、1、0、−1 经 top-k 截断之后的概率。"),
)
def softmax_top_k() -> Column:
    """The same logits with all, two and one of them kept."""
    remarks = (
        Words("nothing is cut", "不截断"), Words("two can be drawn", "只在两个中抽取"),
        Words("always the likeliest", "总取最可能的"),
    )  # fmt: skip
    return Column(_panels(by_top_k(), remarks, ("p", "p''", "")))


@scene(
    Words("Softmax under top-p", "top-p 截断之后的 softmax"),
    Words(
        "Top-p of the logits 2, 1, 0, −1: the smallest set whose probabilities reach p. ",
        "logits 2、1、0、−1 的 top-p：累计概率达到 p 的最小集合。",
    ),
)
def softmax_top_p() -> Column:
    """The probabilities with their running sum and two thresholds, then those that each keeps."""
    (_, whole), *cut = by_top_p()
    running = np.cumsum(whole)
    edges = [v + d for v in range(len(running)) for d in (-0.5, 0.5)]
    levels = [Level(p, f"p = {decimal(p)}", RUST, dashed=True, beside=True) for p in (P, LOWER_P)]
    bars = Bars(whole, words=["", *(_short(float(p)) for p in whole[1:])], part=0.33)  # a level lies over the first
    sums = [
        Mark(v, float(total), _short(float(total)), "below" if 0 < P - total < 0.1 else "above", GREEN)
        for v, total in enumerate(running)
    ]
    curve = Polyline(edges, np.repeat(running, 2), GREEN)
    lists = [", ".join(_short(float(x)) for x in found) for found in (whole, running)]
    says = Words(f"probabilities {lists[0]}, running sum {lists[1]}", f"概率 {lists[0]}，累计概率 {lists[1]}")
    plot = Chart((-0.5, len(whole) - 0.5), (0, 1), [*levels, bars, curve, *sums], 130, UNDER, (0, 0.5, 1), says=says)
    key = Key(
        [Sign(Words("probability", "概率"), BLUE, "line"), Sign(Words("running sum", "累计概率"), GREEN, "line")]
    )
    remarks = (
        Words("the third one reaches 0.9", "到第三个达到 0.9"),
        Words("the first one alone does", "第一个就已达到 0.6"),
    )  # fmt: skip
    first = heading(Words("Probabilities and their running sum", "各概率与累计概率"))
    return Column([first, plot, key, *_panels(cut, remarks, ("", ""))])
