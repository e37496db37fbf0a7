"""Sampling: the probabilities of four logits under temperature, top-k and top-p, as bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from byhand.book.lessons.examples.sampling import LOGITS, TAU, K
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.axes import Axes, legend
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, SMALL, TINY, Canvas
from byhand.book.pictures.picture import picture, row, sentence
from byhand.book.words.language import Said, Words
from byhand.equations.softmax import softmax
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.equations.top_p import top_p

P, LOWER_P = 0.9, 0.6  # of top-p: three tokens stay, and one
BAR, HIGH, LETTERS = 24, 110, 10.5  # pixels: the width of a bar, the height of probability 1, the size of numbers
Z = np.asarray(LOGITS, dtype=float)
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


def in_words(start: Words, settings: Callable[[], list[Setting]]) -> Callable[[str], str]:
    """Return a function that says the probabilities under each setting."""
    return lambda lang: sentence(lang, start, (row(lang, words, p) for words, p in settings()))


def _panels(canvas: Canvas, settings: Sequence[Setting], remarks: Sequence[Said]) -> None:
    """Draw the settings side by side, each with a remark below it."""
    each = (canvas.width - 8) / len(settings)
    top = canvas.y + 40
    for i, (words, p) in enumerate(settings):
        left = 4 + i * each
        canvas.text(left + each / 2, canvas.y + 14, words, at="middle", bold=True, size=SMALL)
        axes = Axes(canvas, left + 1, top, each - 2, HIGH, (-0.5, len(p) - 0.5), (0, 1))
        bars(axes, p)
        canvas.text(left + each / 2, axes.bottom + 34, remarks[i], at="middle", size=TINY)
    canvas.y = top + HIGH + 60
    canvas.text(canvas.width / 2, canvas.y - 10, BELOW, at="middle", size=SMALL)


def bars(axes: Axes, p: np.ndarray) -> None:
    """Draw probabilities, their logits below them; a probability of 0 leaves an empty place."""
    for v, x in enumerate(p):
        if x:
            axes.bar(v, float(x), BAR, _short(float(x)), size=LETTERS)
        else:
            axes.canvas.text(axes.x(v), axes.y(0) - 4, "0", at="middle", size=TINY)
        axes.canvas.text(axes.x(v), axes.bottom + 15, decimal(float(Z[v])), at="middle", size=TINY)
    axes.zero()


def _short(x: float) -> str:
    """Write a probability with at most three digits after the point, in little room."""
    return decimal(round(x, 3)) if round(x, 3) else "0.000"


TEMPERATURE = Words(
    "Softmax of the logits 2, 1, 0, −1 at three temperatures. ", "logits 2、1、0、−1 在三种温度下的 softmax 概率。"
)
TOP_K = Words("Probabilities of the logits 2, 1, 0, −1 after top-k. ", "logits 2、1、0、−1 经 top-k 截断之后的概率。")
TOP_P = Words(
    "Top-p of the logits 2, 1, 0, −1: the smallest set whose probabilities reach p. ",
    "logits 2、1、0、−1 的 top-p：累计概率达到 p 的最小集合。",
)
BELOW = Words("Below each bar: the logit of the token", "柱下是该词元的 logit")


@picture(Words("Softmax under temperature", "温度如何改变 softmax"), in_words(TEMPERATURE, by_temperature))
def softmax_temperature(canvas: Canvas) -> None:
    """The same logits at a low temperature, at 1, and at a high one."""
    remarks = Words("sharper", "更尖锐"), Words("as trained", "训练时"), Words("flatter", "更平缓")
    _panels(canvas, by_temperature(), remarks)


@picture(Words("Softmax under top-k", "top-k 截断之后的 softmax"), in_words(TOP_K, by_top_k))
def softmax_top_k(canvas: Canvas) -> None:
    """The same logits with all, two and one of them kept."""
    remarks = (
        Words("nothing is cut", "不截断"),
        Words("two can be drawn", "只在两个中抽取"),
        Words("always the likeliest", "总取最可能的"),
    )
    _panels(canvas, by_top_k(), remarks)


@picture(Words("Softmax under top-p", "top-p 截断之后的 softmax"), in_words(TOP_P, by_top_p))
def softmax_top_p(canvas: Canvas) -> None:
    """The probabilities with their running sum and two thresholds, then those that each keeps."""
    (_, whole), *cut = by_top_p()
    running = np.cumsum(whole)
    canvas.heading(Words("Probabilities and their running sum", "各概率与累计概率"))
    axes = Axes(canvas, 40, canvas.y + 16, 300, 130, (-0.5, len(whole) - 0.5), (0, 1))
    axes.y_ticks((0, 0.5, 1))
    for p in (P, LOWER_P):
        axes.level(p, RUST, dashed=True)
        canvas.text(axes.right + 4, axes.y(p) + 4, f"p = {decimal(p)}", size=TINY)
    for v, x in enumerate(whole):
        axes.bar(v, float(x), BAR, _short(float(x)) if v else "")
        canvas.text(axes.x(v), axes.bottom + 15, decimal(float(Z[v])), at="middle", size=TINY)
    edges = [v + d for v in range(len(running)) for d in (-0.5, 0.5)]
    axes.curve(edges, np.repeat(running, 2), GREEN)
    for v, total in enumerate(running):
        crowded = any(0 <= axes.y(total) - axes.y(p) < TINY for p in (P, LOWER_P))  # a threshold lies right above
        canvas.text(axes.x(v), axes.y(total) + (14 if crowded else -5), _short(float(total)), at="middle", size=TINY)
    axes.zero()
    canvas.y = axes.bottom + 34
    legend(canvas, 40, canvas.y, Words("probability", "概率"), BLUE)
    legend(canvas, 160, canvas.y, Words("running sum", "累计概率"), GREEN)
    canvas.y += 18
    remarks = (
        Words("the third one reaches 0.9", "到第三个达到 0.9"),
        Words("the first one alone does", "第一个就已达到 0.6"),
    )
    _panels(canvas, cut, remarks)
