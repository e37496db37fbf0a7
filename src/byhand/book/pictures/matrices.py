"""Matrices: a product, a look-up, a gradient along a residual stream, a classifier of four small images."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from byhand.book.lessons.examples import embedding as looked_up
from byhand.book.lessons.examples import make
from byhand.book.lessons.examples import matmul as product
from byhand.book.lessons.examples import residual as stream
from byhand.book.lessons.examples.classifier import CLASSES, PICTURES, WEIGHTS, given_weights, loss_of
from byhand.book.numbers.arithmetic import decimal, expression
from byhand.book.numbers.closed_form import array
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, TINY
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.cells import HEAT, Cells, Frame
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.elements import Arrow, Space, told
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column, Link
from byhand.book.pictures.scene.marks import Bars
from byhand.book.words.language import Said, Words
from byhand.engine import Tensor
from byhand.equations.linear import linear
from byhand.equations.matmul import matmul
from byhand.equations.residual import residual
from byhand.equations.softmax import softmax
from byhand.tracing.trace import Trace

ROW, COLUMN = 1, 0  # of the element whose arithmetic is written
DEPTH = 4  # layers that a gradient goes back through
CELL = (34.0, 30.0)


@cache
def multiplied() -> Trace:
    """Return the product of the lesson's two matrices."""
    a, b = (Tensor(array(x), name=name) for name, x in (("A", product.A), ("B", product.B)))
    return Trace.of(lambda: matmul(a, b, name="Y"))


def _worked() -> str:
    answer = multiplied().answer("Y", (ROW, COLUMN))
    assert answer.term
    return f"{answer.target} = {expression(answer.term)} = {decimal(answer.value)}"


@scene("A matrix product: row 1 of A times column 0 of B", "矩阵乘法：A 的第 1 行乘以 B 的第 0 列")
def matrix_product() -> Column:
    """The matrices of the lesson `matmul`, a row, a column and their product framed."""
    place = ROW, COLUMN
    frames = Frame((ROW, 0), (ROW, 2), RUST), Frame((0, COLUMN), (2, COLUMN), GREEN), Frame(place, place, RUST)
    a, b, y = (
        Cells(matrix.tolist(), HEAT, frames=[frame], title=f"{name} {matrix.shape}", cell=CELL)
        for (name, matrix), frame in zip(multiplied().values.items(), frames, strict=True)
    )
    return Column([Across([a, Caption("×", size=16), b, Caption("=", size=16), y]), Caption(_worked())])


def rows() -> dict[str, np.ndarray]:
    """Return the table, the rows that the tokens pick, the positions' rows, and their sums."""
    found = {a.name: a.data for step in make("embedding").steps[:2] for a in (*step.inputs, *step.arrays)}
    return {"table": found["W_te"], "E": found["E"], "P": found["W_pe"], "X": found["X"]}


@scene("Embedding: tokens pick rows of a table", "嵌入：词元从表中取行")
def embedding_lookup() -> Column:
    """The table of the lesson `embedding`, the rows that three tokens pick, and their positions' rows."""
    found = rows()
    largest = max(float(np.abs(x).max()) for x in found.values())

    def lines(name: str, title: Said) -> Column:
        """Return a matrix as rows that links can find."""
        said = [
            Cells([row.tolist()], HEAT, largest, [str(i)] if name == "table" else (), cell=CELL, name=f"{name}{i}")
            for i, row in enumerate(found[name])
        ]
        return Column(said, gap=0, title=title, at="middle", join="; ")

    links = [
        Link(f"table{token}", f"E{t}", "right", "left", colour=(BLUE, RUST, BLUE)[t], straight=True)
        for t, token in enumerate(looked_up.TOKENS)
    ]
    line = [
        lines("table", "W_te"), Space(wide=34), lines("E", Words("E, by token", "E：按词元")), Caption("+", size=16),
        lines("P", Words("P, by position", "P：按位置")), Caption("=", size=16), lines("X", "X = E + P"),
    ]  # fmt: skip
    words = Words("Tokens 2, 1, 2: row 2 is read twice.", "词元 2、1、2：第 2 行被读取两次。")
    return Column([Across(line, gap=2), Caption(words)], links=links)


def left_of_a_gradient(beside: bool) -> list[float]:
    """Return the gradient of the output and of each layer's input, the last layer first."""
    w = Tensor(array(stream.SLOPE), name="w")

    def deep() -> Tensor:
        x = Tensor(array([[1]]), requires_grad=True, name="x0")
        for layer in range(1, DEPTH + 1):
            a = linear(x, w, name=f"a{layer}" if beside else f"x{layer}")
            x = residual(x, a, name=f"x{layer}") if beside else a
        return x

    found = Trace.of(deep).backward(array([[1]])).by_name
    return [round(float(found[f"x{layer}"][0, 0]), 9) for layer in range(DEPTH, -1, -1)]


@scene("A gradient on its way back through four layers", "梯度反向穿过四层")
def residual_gradient() -> Column:
    """A gradient of 1 after each layer, without a residual stream and with it."""
    alone = Words("each layer alone: × 0.1", "只有各层本身：每层 × 0.1")
    beside = Words("with the residual stream: × (1 + 0.1)", "有残差流：每层 × (1 + 0.1)")
    passed = [Words(f"back {back}", f"回传 {back} 层") for back in range(1, DEPTH)]
    under = dict(enumerate([Words("output", "输出处"), *passed, Words("input", "输入处")]))
    return Column([
        Chart((-0.5, DEPTH + 0.5), (0, 1.5), [Bars(left_of_a_gradient(way), colour, 5)], 84, under, title=words)
        for words, way, colour in ((alone, False, RUST), (beside, True, BLUE))
    ])  # fmt: skip


BARS = (Words("left", "左"), Words("right", "右"), Words("top", "上"), Words("bottom", "下"))


@cache
def computed() -> tuple[np.ndarray, np.ndarray]:
    """Return the hidden units and the probabilities of the four pictures before training."""
    values = Trace.of(partial(loss_of, given_weights(array), array)).values
    return values["h"], np.round(softmax.forward(values["z"])[0], 6)


@scene("Four bars through the network, before training", "训练之前，四张图通过网络")
def bars_through_the_network() -> Column:
    """The columns of W_1 as patterns of pixels; then each bar, its hidden units and its probabilities."""
    patterns = []
    for n, pattern in enumerate(array(WEIGHTS["W_1"]).T):
        unit = Words(f"hidden unit {n}", f"隐藏单元 {n}")
        cells = Cells(pattern.reshape(2, 2).tolist(), HEAT, cell=(34, 30), shows="W_1")
        says = told(unit, *(decimal(float(w)) for w in pattern))
        patterns.append(Across([cells, Caption(unit, size=TINY)], gap=2, says=says))
    widths, arrow, (units, p) = (46, 60, 24, 84, 24, None), Arrow(right=True), computed()
    titles = Words("pixels X", "像素 X"), Words("units h", "单元 h"), Words("probabilities p", "概率 p")
    names = (piece for words in titles for piece in (Space(), Caption(words, bold=True, at="middle")))
    classes, lines = (Words("vertical", "竖线"), Words("horizontal", "横线")), []
    for n, (bar, pixels) in enumerate(zip(BARS, PICTURES, strict=True)):
        right = (0, CLASSES[n])
        picture = Cells([pixels[:2], pixels[2:]], HEAT, cell=(24, 24), shown=False, shows="X")
        h = Cells([units[n].tolist()], HEAT, float(units.max()), columns=() if n else ("0", "1"), cell=(40, 30),
                  shows="h")  # fmt: skip
        q = Cells([p[n].tolist()], HEAT, float(p.max()), columns=() if n else classes, frames=[Frame(right, right)],
                  cell=(64, 30))  # fmt: skip
        listed = (", ".join(decimal(float(x), 3) for x in row[n]) for row in (units, p))
        says = told(bar, *(f"{name} {numbers}" for name, numbers in zip("hp", listed, strict=True)))
        line = Caption(bar, size=TINY, at="end"), picture, arrow, h, arrow, q
        lines.append(Across(line, gap=4, widths=widths, says=says))
    first = Caption(Words("patterns: the columns of W_1", "图样：W_1 的各列"), bold=True, says="")
    note = Caption(Words("Framed: the right class.", "带框的是正确的类别。"))
    return Column([first, Across(patterns), Across(list(names), gap=4, widths=widths), *lines, note], gap=12)
