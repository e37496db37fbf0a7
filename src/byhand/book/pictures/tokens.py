"""Tokens: bytes join into them, and one is drawn from their probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byhand.book.lessons.examples.bpe import FIRST, MERGES, TEXT
from byhand.book.lessons.examples.sampling import LOGITS, TAU, K
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, SIZE
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import Box, Key, Sign, told
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column
from byhand.book.pictures.scene.marks import Bars, Level, Mark, Polyline
from byhand.book.words.language import Said, Words
from byhand.equations.softmax import softmax
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.equations.top_p import top_p
from byhand.tokenizers.plain import joined, learn
from byhand.tokenizers.splitting import words

CELL = 34.0


def stages() -> list[list[str]]:
    """Return the tokens of the last word, before the first merge and after each."""
    cut = [word.encode() for word in words(TEXT)]
    names = {byte: chr(byte).replace(" ", "␣") for byte in TEXT.encode()}
    row, found = tuple(cut[-1]), list[list[str]]()
    for k, pair in enumerate([*learn(dict.fromkeys(cut, 1), MERGES), (-1, -1)]):
        found.append([names[id_] for id_ in row])
        if pair[0] >= 0:
            names[FIRST + k] = names[pair[0]] + names[pair[1]]
            row = joined(row, pair, FIRST + k)
    return found


@scene("The last word of the text, merge by merge", "文本的最后一个词，逐次合并")
def merges() -> Column:
    """The tokens of a word as boxes, as wide as they have bytes; new ones are filled."""
    before, lines = None, []
    for k, tokens in enumerate(stages()):
        label = Words(f"after merge {k}", f"第 {k} 次合并后") if k else Words("bytes", "字节")
        boxes = [Box(t, BLUE * (t not in (before or tokens)), high=26, size=SIZE) for t in tokens]
        widths = 110, *(len(token) * CELL - 2 for token in tokens)
        says = told(label, " ".join(tokens))
        lines.append(Across([Caption(label, at="end"), *boxes], gap=2, widths=widths, says=says))
        before = tokens
    return Column(lines)


P, LOWER_P = 0.9, 0.6  # of top-p: three tokens stay, and one
Z = np.asarray(LOGITS, dtype=float)
UNDER = {v: decimal(float(z)) for v, z in enumerate(Z)}
Setting = tuple[Words, np.ndarray]  # name, probabilities


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


def _panels(settings: Sequence[Setting], remarks: Sequence[Said], shows: Sequence[str] = ("", "")) -> list[Figure]:
    """Return the settings side by side, each with a remark below it; `shows` has the lesson's arrays."""
    plots = [
        Chart((-0.5, len(p) - 0.5), (0, 1), [_bars(p)], 110, UNDER, (), remark, title=words, at="middle", shows=name)
        for (words, p), remark, name in zip(settings, remarks, shows, strict=True)
    ]
    below = Words("Below each bar: the logit of the token", "柱下是该词元的 logit")
    return [Across(plots, gap=2), Caption(below, at="middle")]


def _bars(p: np.ndarray) -> Bars:
    return Bars(p, words=[_short(float(x)) for x in p])


def _short(x: float) -> str:
    """Write a probability with at most three digits after the point, in little room."""
    return "0" if not x else decimal(round(x, 3)) if round(x, 3) else "0.000"


@scene("The logits 2, 1, 0, −1: softmax under temperature", "logits 2、1、0、−1：温度如何改变 softmax")
def softmax_temperature() -> Column:
    """The same logits at a low temperature, at 1, and at a high one."""
    remarks = Words("sharper", "更尖锐"), Words("as trained", "训练时"), Words("flatter", "更平缓")
    return Column(_panels(by_temperature(), remarks, ("", "p", "p'")))


@scene("The logits 2, 1, 0, −1: softmax under top-k", "logits 2、1、0、−1：top-k 截断之后的 softmax")
def softmax_top_k() -> Column:
    """The same logits with all, two and one of them kept."""
    two, one = Words("two can be drawn", "只在两个中抽取"), Words("always the likeliest", "总取最可能的")
    return Column(_panels(by_top_k(), (Words("nothing is cut", "不截断"), two, one), ("p", "p''", "")))


@scene("The logits 2, 1, 0, −1: softmax under top-p", "logits 2、1、0、−1：top-p 截断之后的 softmax")
def softmax_top_p() -> Column:
    """The probabilities with their running sum and two thresholds, then those that each keeps."""
    (_, whole), *cut = by_top_p()
    running = np.cumsum(whole)
    edges = [v + d for v in range(len(running)) for d in (-0.5, 0.5)]
    levels = [Level(p, f"p = {decimal(p)}", beside=True) for p in (P, LOWER_P)]
    bars = Bars(whole, words=["", *(_short(float(p)) for p in whole[1:])], part=0.33)  # a level lies over the first
    sums = [
        Mark(v, float(total), _short(float(total)), "below" if 0 < P - total < 0.1 else "above", GREEN)
        for v, total in enumerate(running)
    ]
    curve = Polyline(edges, np.repeat(running, 2), GREEN)
    names = Words("probability", "概率"), Words("running sum", "累计概率")
    lists = [
        told(name, *(_short(float(x)) for x in found)) for name, found in zip(names, (whole, running), strict=True)
    ]
    says = Words(*("; ".join(words.said(lang) for words in lists) for lang in ("en", "zh")))
    plot = Chart((-0.5, len(whole) - 0.5), (0, 1), [*levels, bars, curve, *sums], 130, UNDER, (0, 0.5, 1), says=says)
    key = Key([Sign(name, colour, "line") for name, colour in zip(names, (BLUE, GREEN), strict=True)])
    third, alone = (
        Words("the third one reaches 0.9", "到第三个达到 0.9"),
        Words("the first one alone does", "第一个就已达到 0.6"),
    )
    least = Words("The smallest set whose probabilities reach p", "累计概率达到 p 的最小集合")
    return Column([Caption(least, bold=True, size=SIZE, says=least), plot, key, *_panels(cut, (third, alone))])
