"""The lessons on matrices as pictures: a product, a look-up, and a gradient along a residual stream."""

from __future__ import annotations

from functools import cache

import numpy as np

from byhand.book.lessons.examples import embedding as looked_up
from byhand.book.lessons.examples import make
from byhand.book.lessons.examples import matmul as product
from byhand.book.lessons.examples import residual as stream
from byhand.book.numbers.arithmetic import decimal, expression
from byhand.book.numbers.closed_form import array
from byhand.book.pictures.axes import Axes
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, SMALL, TINY, Canvas
from byhand.book.pictures.heat import heat
from byhand.book.pictures.picture import picture, row, sentence
from byhand.book.words.language import Said, Words
from byhand.engine import Tensor
from byhand.equations.linear import linear
from byhand.equations.matmul import matmul
from byhand.equations.residual import residual
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


def product_in_words(lang: str) -> str:
    """Say the marked element's arithmetic."""
    return Words(
        f"A matrix product: row {ROW} of A times column {COLUMN} of B. {_worked()}.",
        f"矩阵乘法：A 的第 {ROW} 行乘以 B 的第 {COLUMN} 列。{_worked()}。",
    ).said(lang)


@picture(Words("A matrix product: rows times columns", "矩阵乘法：行乘以列"), product_in_words)
def matrix_product(canvas: Canvas) -> None:
    """The matrices of the lesson `matmul`, a row, a column and their product framed."""
    a, b, y = multiplied().values.values()
    high = 3 * CELL[1]
    places = ((a, 12, "A (2, 3)"), (b, 166, "B (3, 2)"), (y, 290, "Y (2, 2)"))
    for matrix, x, words in places:
        top = canvas.y + 28 + (high - len(matrix) * CELL[1]) / 2
        canvas.text(x + matrix.shape[1] * CELL[0] / 2, canvas.y + 16, words, at="middle", size=SMALL, bold=True)
        heat(canvas, x, top, matrix.tolist(), cell=CELL)
        if matrix is a:
            canvas.frame(x, top + ROW * CELL[1], 3 * CELL[0], CELL[1], RUST, 2.5)
        elif matrix is b:
            canvas.frame(x + COLUMN * CELL[0], top, CELL[0], high, GREEN, 2.5)
        else:
            canvas.frame(x + COLUMN * CELL[0], top + ROW * CELL[1], *CELL, RUST, 2.5)
    middle = canvas.y + 28 + high / 2 + 5
    canvas.text(140, middle, "×", at="middle", size=16)
    canvas.text(262, middle, "=", at="middle", size=16)
    canvas.y += 28 + high + 30
    canvas.text(12, canvas.y, _worked())
    canvas.y += 12


def rows() -> dict[str, np.ndarray]:
    """Return the table, the rows that the tokens pick, the positions' rows, and their sums."""
    found = {a.name: a.data for step in make("embedding").steps[:2] for a in (*step.inputs, *step.arrays)}
    return {"table": found["W_te"], "E": found["E"], "P": found["W_pe"], "X": found["X"]}


def lookup_in_words(lang: str) -> str:
    """Say the sums."""
    start = Words(
        "The tokens 2, 1, 2 pick rows of a table; each position adds its row. ",
        "词元 2、1、2 从表中取出对应的行，各位置再加上自己的行。",
    )
    return sentence(lang, start, (row(lang, f"X[{t}]", x) for t, x in enumerate(rows()["X"])))


@picture(Words("Embedding: rows of a table", "嵌入：从表中取行"), lookup_in_words)
def embedding_lookup(canvas: Canvas) -> None:
    """The table of the lesson `embedding`, the rows that three tokens pick, and their positions' rows."""
    found, tokens, top = rows(), looked_up.TOKENS, 30
    largest = max(float(np.abs(x).max()) for x in found.values())
    titles: dict[str, Said] = {
        "table": "W_te", "E": Words("E, by token", "E：按词元"), "P": Words("P, by position", "P：按位置"),
        "X": "X = E + P",
    }  # fmt: skip
    lefts = {"table": 26, "E": 134, "P": 232, "X": 328}
    for name, matrix in found.items():
        x, y = lefts[name], top + (0 if name == "table" else CELL[1] / 2)
        canvas.text(x + CELL[0], 16, titles[name], at="middle", size=TINY, bold=True)
        said = [str(v) for v in range(len(matrix))] if name == "table" else ()
        heat(canvas, x, y, matrix.tolist(), cell=CELL, largest=largest, rows_said=said)
    for t, token in enumerate(tokens):
        from_y, to_y = top + (token + 0.5) * CELL[1], top + (t + 1) * CELL[1]
        canvas.arrow(
            [(lefts["table"] + 2 * CELL[0] + 3, from_y), (lefts["E"] - 3, to_y)], colour=(BLUE, RUST, BLUE)[t]
        )
    middle = top + 2 * CELL[1] + 5
    canvas.text(217, middle, "+", at="middle", size=16)
    canvas.text(314, middle, "=", at="middle", size=16)
    canvas.y = top + 4 * CELL[1] + 22
    canvas.text(
        12, canvas.y, Words("Tokens 2, 1, 2: row 2 is read twice.", "词元 2、1、2：第 2 行被读取两次。"), size=SMALL
    )
    canvas.y += 12


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


ALONE = Words("each layer alone: × 0.1", "只有各层本身：每层 × 0.1")
BESIDE = Words("with the residual stream: × (1 + 0.1)", "有残差流：每层 × (1 + 0.1)")


def residual_in_words(lang: str) -> str:
    """Say both rows of gradients."""
    start = Words("A gradient on its way back through four layers. ", "梯度反向穿过四层。")
    found = ((words, left_of_a_gradient(beside)) for words, beside in ((ALONE, False), (BESIDE, True)))
    return sentence(lang, start, (row(lang, words, x, 5) for words, x in found))


@picture(Words("A gradient through four layers", "梯度穿过四层"), residual_in_words)
def residual_gradient(canvas: Canvas) -> None:
    """A gradient of 1 after each layer, without a residual stream and with it."""
    for words, beside, colour in ((ALONE, False, RUST), (BESIDE, True, BLUE)):
        canvas.text(4, canvas.y + 16, words, size=SMALL, bold=True)
        axes = Axes(canvas, 4, canvas.y + 44, 392, 84, (-0.5, DEPTH + 0.5), (0, 1.5))
        for back, value in enumerate(left_of_a_gradient(beside)):
            axes.bar(back, value, 44, decimal(value), colour)
            canvas.text(axes.x(back), axes.bottom + 16, _layer(back), at="middle", size=TINY)
        axes.zero()
        canvas.y = axes.bottom + 28
    canvas.y -= 4


def _layer(back: int) -> Words:
    """Say how many layers a gradient has passed."""
    if back in (0, DEPTH):
        return Words("output", "输出处") if not back else Words("input", "输入处")
    return Words(f"back {back}", f"回传 {back} 层")
