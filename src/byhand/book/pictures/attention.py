"""Attention: scores and weights as heat maps, the spread of scores without their scale, pairs turned by position."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np

from byhand.book.lessons.examples.paper_gpt import VOCABULARY
from byhand.book.lessons.examples.rotary import SETTINGS
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, RUST, TINY
from byhand.book.pictures.passes import TOKENS, attention_of, pass_of
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.cells import HEAT, ONE, Cells
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import Arrow, Key, Sign, Space, told
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, heading
from byhand.book.pictures.scene.marks import Bars, Circle, Dots, Vector
from byhand.book.words.language import COMMA, Said, Words, say
from byhand.equations.attention_scores import attention_scores
from byhand.equations.matmul import matmul
from byhand.equations.rotary import frequencies, rotary
from byhand.equations.softmax import softmax

CELL = (44, 32)


def of_paper_gpt() -> dict[str, np.ndarray]:
    """Return scores and weights (3, 3) of the paper GPT's only head."""
    values = pass_of("paper-gpt").trace.values
    return {kind: settled(values[f"blocks.0.attn.{kind}"])[0, 0] for kind in ("scores", "weights")}


def of_heads(heads: int) -> np.ndarray:
    """Return the weights (H, 3, 3) of the lesson `multi-head` with so many heads."""
    return settled(attention_of(heads).values["attn.weights"])[0]


def settled(x: Any) -> np.ndarray:
    """Return numbers without rounding residue, which differs between machines."""
    return np.round(np.asarray(x, dtype=float), 6) + 0.0


def heat_map(found: np.ndarray, of: Sequence[Said], title: Said, mask: bool = True, **others: Any) -> Cells:
    """Return a heat map with its queries and keys; weights that the mask makes 0 are crossed out."""
    hidden = [(int(t), int(s)) for t, s in np.argwhere(found == 0)] if mask else ()
    rows = [Words(f"query {say(n, 'en')}", f"查询 {say(n, 'zh')}") for n in of]
    names = [Words(f"key {n}", f"键 {n}") if isinstance(n, str) else n for n in of]
    shown = {"rows": rows, "columns": names, "hidden": hidden, "cell": CELL, **others}
    return Cells(found.tolist(), HEAT, ONE if mask else 0, title=title, **shown)


HIDDEN = Words("hidden by the mask: the key comes later", "被掩码遮住：键在查询之后")
KEY = Key([Sign(HIDDEN, kind="hidden"), Sign(Words("weight", "权重"), kind="scale")], at="middle")


@scene("One head of the paper GPT, from scores to weights", "纸上的 GPT 的一个头：从分数到权重")
def attention_one_head() -> Column:
    """Scores and weights of the paper GPT's tokens side by side, masked cells crossed out."""
    found, words = of_paper_gpt(), [VOCABULARY[token] for token in TOKENS]
    weights = Words("weights P, rows sum to 1", "权重 P，每行之和为 1")
    later = Words("the mask hides later keys", "掩码遮住后面的键")
    maps = [
        heat_map(found["scores"], words, Words("scores S", "分数 S"), mask=False, shows="attn.scores"),
        Arrow(Words("mask", "掩码"), "softmax", right=True, says=later),
        heat_map(found["weights"], words, weights, rows=(), shows="attn.weights"),
    ]
    return Column(
        [heading(Words("The three words of the paper GPT", "纸上的 GPT：三个词")), Across(maps, gap=0), KEY]
    )


@scene("Attention weights of one input, by one head and two", "同一输入经过一个头与两个头的注意力权重")
def attention_two_heads() -> Column:
    """Weights of the lesson `multi-head`: a single head above, two heads below."""
    words = Words(
        "One head makes one pattern of weights for all four columns. Two heads make one for each two columns.",
        "一个头对全部四列使用同一组权重。两个头各对两列使用一组权重。",
    )
    one, first, second = *of_heads(1), *of_heads(2)
    whole = heat_map(one, "012", Words("one head, D = 4", "一个头，D = 4"))
    two = [
        heat_map(first, "012", Words("head 0, D = 2", "头 0，D = 2")),
        heat_map(second, "012", Words("head 1, D = 2", "头 1，D = 2"), rows=()),
    ]
    return Column([Across([whole, Caption(words)], widths=(200, None)), Across(two), KEY])


WIDTHS, KEYS, SEED = (4, 64, 1024), 60, 13
FEW = 5  # keys that a softmax weighs


@cache
def scores(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the dot products of a random query with random keys, bare and divided by the root of D."""
    draw = Random(SEED + width).gauss
    q, k = (np.asarray([[draw(0, 1) for _ in range(width)] for _ in range(KEYS)]) for _ in range(2))
    bare = np.diagonal(matmul.forward(q, k.T)[0])
    scaled = attention_scores.forward(q[:, None, None, :], k[:, None, None, :])[0][:, 0, 0, 0]
    return np.round(bare, 6), np.round(scaled, 6)


def weights(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the softmax of the first scores, bare and scaled."""
    bare, scaled = (softmax.forward(x[:FEW])[0] for x in scores(width))
    return bare, scaled


def spread(width: int) -> float:
    """Return the root of the mean square of the bare dot products."""
    return float(np.sqrt(np.mean(scores(width)[0] ** 2)))


@scene("Why scores are divided by √D", "分数为什么除以 √D")
def scale_by_root_d() -> Column:
    """Dot products for three widths as dots, then softmax of five of them with and without the scale."""
    titles = (
        Words("softmax of five of them, not scaled", "其中五个的 softmax，不缩放"),
        Words("the same, divided by √D first", "同样五个，先除以 √D"),
    )
    soft = [
        Across([_softmax(d, weights(d)[i], colour) for d in WIDTHS], gap=6, title=words, at="start")
        for i, (words, colour) in enumerate(zip(titles, (RUST, BLUE), strict=True))
    ]
    first = heading(Words("q · k of random vectors, variance 1", "方差为 1 的随机向量的点积 q · k"))
    return Column([first, *map(_cloud, WIDTHS), *soft])


def _cloud(d: int) -> Across:
    """Return the dots of one width, with their expected and actual spread."""
    measured = decimal(spread(d), 3)
    words = f"√D = {decimal(d**0.5)}", Words(f"spread {measured}", f"标准差 {measured}")
    name = Column([Caption(f"D = {d}", bold=True), *(Caption(w, size=TINY) for w in words)], gap=-2, join=COMMA)
    ticks = (-100, -50, 0, 50, 100) if d == WIDTHS[-1] else {-100: "", 100: ""}
    plot = Chart((-100.0, 100.0), (-1, 1), [Dots(scores(d)[0])], 40, ticks, lines=False)
    return Across([name, plot], widths=(80, None))


def _softmax(d: int, found: np.ndarray, colour: str) -> Chart:
    said = [decimal(round(float(w), 2)) if w == found.max() else "" for w in found]
    says = Words(f"D = {d}, largest {max(said)}", f"D = {d}，最大的为 {max(said)}")
    return Chart((-0.5, FEW - 0.5), (0, 1), [Bars(found, colour, words=said)], 64, (), (), f"D = {d}", says=says)


POSITIONS, PAIRS = 5, 2


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
        lines.append(line(named_law(pair, law), [_dial(Vector((x, y), BLUE)) for x, y in turned()[p].tolist()], says))
    first = turned()[0].tolist()
    pairs = [_dial(Vector(first[t - 1], RUST), Vector(first[t], BLUE)) for t in range(1, POSITIONS)]
    products = [decimal(float(turned()[0, t] @ turned()[0, t - 1]), 3) for t in range(1, POSITIONS)]
    says = told(Words("dot products of neighbouring arrows of pair 0", "第 0 对相邻箭头的点积"), *products)
    signs = (Key([Sign(Words(en, zh), colour)]) for en, zh, colour in (("query", "查询", BLUE), ("key", "键", RUST)))
    words = Words("Query at t and key at t − 1: always the same angle", "位置 t 的查询与 t − 1 处的键，夹角相同：")
    return Column([*lines, Caption(words, says=""), line(Column(list(signs), gap=0), [Space(), *pairs], says)])


def _dial(*arrows: Vector) -> Chart:
    return Chart((-1.1, 1.1), (-1.1, 1.1), [Circle(1), *arrows], 54, wide=58, zero=False)


def named_law(name: Said, law: str) -> Column:
    """Return a bold name above its law."""
    return Column([Caption(name, bold=True), Caption(law)], gap=0)
