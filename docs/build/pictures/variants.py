"""Variants of the model: heads that share keys, windows, SiLU, and the exact form of GELU."""

from __future__ import annotations

from functools import cache

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.attention import heat_map, named_law
from byhand.book.pictures.canvas import BLUE, GREEN, RUST
from byhand.book.pictures.curves import LIMIT, XS, mark, plot, values
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import Box, Key, Sign, told
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column, Link
from byhand.book.pictures.scene.marks import Mark, Polyline
from byhand.book.words.language import Words
from byhand.equations.gelu import gelu
from byhand.equations.gelu_exact import gelu_exact
from byhand.equations.relu import relu
from byhand.equations.repeat_heads import repeat_heads
from byhand.equations.silu import silu
from byhand.equations.window_softmax import window_softmax

HEADS = 4  # of queries


@cache
def readers(n_kv_heads: int) -> tuple[int, ...]:
    """Return which head of keys and values each head of queries reads."""
    heads = np.arange(n_kv_heads, dtype=float).reshape(1, n_kv_heads, 1, 1)
    return tuple(repeat_heads.forward(heads, times=HEADS // n_kv_heads)[0].ravel().astype(int).tolist())


KINDS = {HEADS: Words("multi-head", "多头"), 2: Words("grouped-query", "分组查询"), 1: Words("multi-query", "多查询")}


@scene(f"Which keys and values each of {HEADS} query heads reads", f"{HEADS} 个查询头各自读取的键值头")
def grouped_queries() -> Column:
    """Heads of queries above, the heads of keys and values that they read below, for three numbers of these."""
    note = Caption(Words("A KV cache keeps the lower row.", "键值缓存只存下面一行。"))
    return Column([*map(_sharing, KINDS), note], gap=16)


def _sharing(k: int) -> Across:
    """Return the heads for a number of heads of keys and values."""
    queries = Across([Box(f"Q {h}", BLUE, name=f"q{h}") for h in range(HEADS)])
    keys = Across([Box(f"K, V {n}", RUST, name=f"k{n}", wide=58) for n in range(k)], shares=[1] * k)
    links = [Link(f"q{h}", f"k{n}", straight=True, head=False) for h, n in enumerate(readers(k))]
    read, law = ", ".join(map(str, readers(k))), f"K = {k}, G = {HEADS // k}"
    says = Words(f"{KINDS[k].en}, {law}: {read}", f"{KINDS[k].zh}，{law}：{read}")
    return Across(
        [named_law(KINDS[k], law), Column([queries, keys], gap=28, links=links)], widths=(122, None), says=says
    )


QUERIES, WINDOW = 6, 3


@cache
def masks() -> dict[int, np.ndarray]:
    """Return the weights of equal scores: with a window of all positions, and with a small one."""
    return {w: window_softmax.forward(np.zeros((QUERIES, QUERIES)), window=w)[0] for w in (QUERIES, WINDOW)}


@scene(f"How many keys each of {QUERIES} queries sees", f"{QUERIES} 个查询各能看到多少个键")
def attention_windows() -> Column:
    """Both masks side by side; the depth of a cell's colour is its weight for equal scores."""
    titles = Words("causal", "因果掩码"), Words(f"window W = {WINDOW}", f"窗口 W = {WINDOW}")
    numbers, maps = [str(n) for n in range(QUERIES)], []
    for title, weights in zip(titles, masks().values(), strict=True):
        says = told(title, *(str(int((row > 0).sum())) for row in weights))
        maps.append(
            heat_map(weights, numbers, title, rows=numbers, columns=numbers, cell=(25, 25), shown=False, says=says)
        )
    words = Words("not seen; rows are queries, columns keys", "看不到；行是查询，列是键")
    return Column([Across(maps), Key([Sign(words, kind="hidden")], at="middle")])


@scene("SiLU, GELU and ReLU as curves", "SiLU、GELU 与 ReLU 的曲线")
def silu_gelu_relu() -> Chart:
    """Three functions from -4 to 4, with the lowest point of SiLU."""
    drawn = (silu, BLUE, "SiLU"), (gelu_exact, GREEN, "GELU"), (relu, RUST, "ReLU")
    curves = [Polyline(XS, values(equation, XS), colour, name) for equation, colour, name in drawn]
    least = float(XS[np.argmin(values(silu, XS))])
    return plot([*curves, mark("SiLU", silu, least, "below")], 220, (-1.0, LIMIT), range(5))


@scene("The tanh form of GELU less the exact form", "GELU 的 tanh 形式减去精确形式")
def gelu_forms() -> Chart:
    """The tanh form less the exact one from -4 to 4, with its largest value."""
    ys = 10_000 * (values(gelu, XS) - values(gelu_exact, XS))
    far = int(np.argmax(np.where(XS > 0, np.abs(ys), 0)))
    curve = Polyline(XS, ys, words=Words("tanh form − exact form, × 10⁻⁴", "tanh 形式 − 精确形式，× 10⁻⁴"))
    most = Mark(XS[far], ys[far], f"x = {decimal(float(XS[far]))}: {decimal(float(ys[far]) / 10_000, 2)}", "left")
    return plot([curve, most], 170, (-3.0, 7.0), (-2, 0, 2, 4, 6), np.arange(5.0))
