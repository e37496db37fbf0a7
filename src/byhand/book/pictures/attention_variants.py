"""Variants of attention: pairs turned by their position, heads of keys and values shared by queries, and windows."""

from __future__ import annotations

from functools import cache

import numpy as np

from byhand.book.lessons.examples.rotary import SETTINGS
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, RUST, SMALL, Canvas
from byhand.book.pictures.heat import crossed, heat
from byhand.book.pictures.picture import picture, row, sentence
from byhand.book.words.language import Words
from byhand.equations.repeat_heads import repeat_heads
from byhand.equations.rotary import frequencies, rotary
from byhand.equations.window_softmax import window_softmax

POSITIONS, PAIRS = 5, 2
RADIUS, LEFT, APART = 25, 104, 66  # of the dials: their size, the middle of the first one, from one to the next
HEADS, GROUPS = 4, (4, 2, 1)  # of queries; of keys and values
TOKENS, WINDOW = 6, 3


@cache
def turned() -> np.ndarray:
    """Return both pairs, (1, 0) at position 0, at every position: (pair, position, 2)."""
    start = np.repeat([[1.0, 1.0, 0.0, 0.0]], POSITIONS, axis=0)
    y = np.round(rotary.forward(start, **SETTINGS)[0], 6) + 0.0
    return np.stack([y[:, [p, p + PAIRS]] for p in range(PAIRS)])


def turning_in_words(lang: str) -> str:
    """Say the angles of the pairs, and the dot products of neighbours."""
    said = [
        row(
            lang,
            Words(f"pair {p}, angles", f"第 {p} 对，角度"),
            [position * angle for position in range(POSITIONS)],
        )
        for p, angle in enumerate(frequencies(SETTINGS["base"], SETTINGS["width"]))
    ]
    products = [float(turned()[0, t] @ turned()[0, t - 1]) for t in range(1, POSITIONS)]
    neighbours = Words("dot products of neighbouring arrows of pair 0", "第 0 对相邻箭头的点积")
    said.append(row(lang, neighbours, products))
    count = POSITIONS - 1
    start = Words(
        f"Two pairs of numbers as arrows, turned at positions 0 to {count}. ",
        f"两对数画成箭头，在位置 0 到 {count} 各转过一个角度。",
    )
    return sentence(lang, start, said)


@picture(Words("Pairs of numbers turned by their position", "按位置旋转的数对"), turning_in_words)
def rotary_turns(canvas: Canvas) -> None:
    """A dial for each pair and position; below, a query and the key before it at several positions."""
    for t in range(POSITIONS):
        canvas.text(LEFT + t * APART, 14, f"t = {t}", at="middle", size=SMALL, bold=True)
    canvas.y = 26
    for p, angle in enumerate(frequencies(SETTINGS["base"], SETTINGS["width"])):
        canvas.text(4, canvas.y + RADIUS, Words(f"pair {p}", f"第 {p} 对"), bold=True)
        canvas.text(4, canvas.y + RADIUS + 16, "a = t" if angle == 1 else f"a = {decimal(angle)} t", size=SMALL)
        for t in range(POSITIONS):
            _dial(canvas, LEFT + t * APART, (turned()[p, t], BLUE))
        canvas.y += 2 * RADIUS + 14
    canvas.y += 6
    words = Words("Query at t and key at t − 1: always the same angle", "位置 t 的查询与 t − 1 处的键，夹角相同：")
    canvas.text(4, canvas.y + 12, words, size=SMALL)
    canvas.y += 24
    canvas.text(4, canvas.y + RADIUS - 2, Words("query", "查询"), colour=BLUE, bold=True)
    canvas.text(4, canvas.y + RADIUS + 16, Words("key", "键"), colour=RUST, bold=True)
    for t in range(1, POSITIONS):
        _dial(canvas, LEFT + t * APART, (turned()[0, t - 1], RUST), (turned()[0, t], BLUE))
    canvas.y += 2 * RADIUS + 4


def _dial(canvas: Canvas, x: float, *arrows: tuple[np.ndarray, str]) -> None:
    """Draw a circle with arrows from its middle."""
    y = canvas.y + RADIUS
    canvas.ring(x, y, RADIUS)
    for (right, up), colour in arrows:
        tip = (x + (RADIUS - 2) * float(right), y - (RADIUS - 2) * float(up))
        canvas.arrow([(x, y), tip], colour=colour, thick=2)


@cache
def readers(n_kv_heads: int) -> tuple[int, ...]:
    """Return which head of keys and values each head of queries reads."""
    heads = np.arange(n_kv_heads, dtype=float).reshape(1, n_kv_heads, 1, 1)
    return tuple(repeat_heads.forward(heads, times=HEADS // n_kv_heads)[0].ravel().astype(int).tolist())


KINDS = {
    HEADS: Words("multi-head", "多头"),
    2: Words("grouped-query", "分组查询"),
    1: Words("multi-query", "多查询"),
}


def sharing_in_words(lang: str) -> str:
    """Say which head of keys and values each head of queries reads."""
    start = Words(
        f"The head of keys and values that each of {HEADS} heads of queries reads. ",
        f"{HEADS} 个查询头各自读取的键值头。",
    )
    names = {k: Words(f"{words.en}, K = {k}", f"{words.zh}，K = {k}") for k, words in KINDS.items()}
    return sentence(lang, start, (row(lang, names[k], readers(k)) for k in GROUPS))


@picture(Words("Heads of queries that share keys and values", "共用键与值的查询头"), sharing_in_words)
def grouped_queries(canvas: Canvas) -> None:
    """Heads of queries above, the heads of keys and values that they read below, for three numbers of these."""
    left, apart, wide = 132, 66, 56
    for k in GROUPS:
        top, group = canvas.y, HEADS // k
        canvas.text(4, top + 22, KINDS[k], bold=True, size=SMALL)
        canvas.text(4, top + 40, f"K = {k}, G = {group}", size=SMALL)
        for h, reads in enumerate(readers(k)):
            middle = left + (reads * group + (group - 1) / 2) * apart + wide / 2
            canvas.line([(left + h * apart + wide / 2, top + 24), (middle, top + 52)])
            canvas.box(left + h * apart, top + 2, wide, 22, f"Q {h}", fill=BLUE, size=SMALL)
        for n in range(k):
            x = left + (n * group + (group - 1) / 2) * apart
            canvas.box(x, top + 52, wide, 22, f"K, V {n}", fill=RUST, size=SMALL)
        canvas.y += 92
    canvas.text(4, canvas.y, Words("A KV cache keeps the lower row.", "键值缓存只存下面一行。"), size=SMALL)
    canvas.y += 8


@cache
def masks() -> dict[int, np.ndarray]:
    """Return the weights of equal scores: with a window of all positions, and with a small one."""
    return {w: window_softmax.forward(np.zeros((TOKENS, TOKENS)), window=w)[0] for w in (TOKENS, WINDOW)}


def windows_in_words(lang: str) -> str:
    """Say how many keys each query sees."""
    start = Words(
        f"Keys that each of {TOKENS} queries sees, in order. ", f"依次列出 {TOKENS} 个查询各能看到多少个键。"
    )
    names = {TOKENS: Words("causal mask", "因果掩码"), WINDOW: Words(f"window of {WINDOW}", f"窗口为 {WINDOW}")}
    return sentence(lang, start, (row(lang, names[w], (p > 0).sum(axis=1)) for w, p in masks().items()))


@picture(Words("The causal mask and a sliding window", "因果掩码与滑动窗口"), windows_in_words)
def attention_windows(canvas: Canvas) -> None:
    """Both masks side by side; the depth of a cell's colour is its weight for equal scores."""
    titles = {TOKENS: Words("causal", "因果掩码"), WINDOW: Words(f"window W = {WINDOW}", f"窗口 W = {WINDOW}")}
    side, bottom = 25, 0.0
    for x, (window, weights) in zip((42, 236), masks().items(), strict=True):
        canvas.text(x + TOKENS * side / 2, 14, titles[window], at="middle", bold=True)
        numbers = [str(n) for n in range(TOKENS)]
        bottom = heat(
            canvas, x, 44, weights.tolist(), cell=(side, side), largest=1.0, rows_said=numbers, columns_said=numbers,
            hidden=lambda t, s, weights=weights: not weights[t, s], shown=lambda value: "",
        )  # fmt: skip
    canvas.y = bottom + 12
    crossed(canvas, 42, canvas.y, 24, 16)
    canvas.text(
        74, canvas.y + 12, Words("not seen; rows are queries, columns keys", "看不到；行是查询，列是键"), size=SMALL
    )
    canvas.y += 24
