"""Variants of attention: pairs turned by their position, and heads of keys and values shared by queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from byhand.book.lessons.examples.rotary import SETTINGS
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, RUST
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import Box, Key, Sign, Space, told
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, Link
from byhand.book.pictures.scene.marks import Circle, Vector
from byhand.book.words.language import Said, Words
from byhand.equations.repeat_heads import repeat_heads
from byhand.equations.rotary import frequencies, rotary

POSITIONS, PAIRS = 5, 2
HEADS = 4  # of queries


@cache
def turned() -> np.ndarray:
    """Return both pairs, (1, 0) at position 0, at every position: (pair, position, 2)."""
    start = np.repeat([[1.0, 1.0, 0.0, 0.0]], POSITIONS, axis=0)
    y = np.round(rotary.forward(start, **SETTINGS)[0], 6) + 0.0
    return np.stack([y[:, [p, p + PAIRS]] for p in range(PAIRS)])


@scene(f"Pairs turned by their position, 0 to {POSITIONS - 1}", f"按位置 0 到 {POSITIONS - 1} 旋转的数对")
def rotary_turns() -> Column:
    """A dial for each pair and position; below, a query and the key before it at several positions."""

    def line(name: Figure, others: Sequence[Figure], says: Said) -> Across:
        return Across([name, *others], gap=6, widths=(74, *[None] * POSITIONS), says=says)

    lines = [line(Space(), [Caption(f"t = {t}", bold=True, at="middle") for t in range(POSITIONS)], "")]
    for p, angle in enumerate(frequencies(SETTINGS["base"], SETTINGS["width"])):
        law, pair = "a = t" if angle == 1 else f"a = {decimal(angle)} t", Words(f"pair {p}", f"第 {p} 对")
        angles = ", ".join(decimal(t * angle) for t in range(POSITIONS))
        says = Words(f"{pair.en}, angles {law}: {angles}", f"{pair.zh}，角度 {law}：{angles}")
        lines.append(line(_named(pair, law), [_dial(Vector((x, y), BLUE)) for x, y in turned()[p].tolist()], says))
    first = turned()[0].tolist()
    pairs = [_dial(Vector(first[t - 1], RUST), Vector(first[t], BLUE)) for t in range(1, POSITIONS)]
    products = [decimal(float(turned()[0, t] @ turned()[0, t - 1]), 3) for t in range(1, POSITIONS)]
    says = told(Words("dot products of neighbouring arrows of pair 0", "第 0 对相邻箭头的点积"), *products)
    signs = (Key([Sign(Words(en, zh), colour)]) for en, zh, colour in (("query", "查询", BLUE), ("key", "键", RUST)))
    words = Words("Query at t and key at t − 1: always the same angle", "位置 t 的查询与 t − 1 处的键，夹角相同：")
    return Column([*lines, Caption(words, says=""), line(Column(list(signs), gap=0), [Space(), *pairs], says)])


def _dial(*arrows: Vector) -> Chart:
    return Chart((-1.1, 1.1), (-1.1, 1.1), [Circle(1), *arrows], 54, wide=58, zero=False)


def _named(name: Said, law: str) -> Column:
    return Column([Caption(name, bold=True), Caption(law)], gap=0)


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
        [_named(KINDS[k], law), Column([queries, keys], gap=28, links=links)], widths=(122, None), says=says
    )
