"""The recorded graph of one block, with the size of each value and of its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.blocks import block_of, stream_of
from byhand.book.pictures.canvas import BLUE, RUST, SMALL, Canvas
from byhand.book.pictures.passes import BLOCK, pass_of
from byhand.book.pictures.picture import picture
from byhand.book.words.language import SEMICOLON, Words
from byhand.engine import Tensor
from byhand.engine.terms import element_name
from byhand.tracing.tracer import Application

ELEMENT = (0, 2, 0)  # of the stream, whose gradient is added up
FORKS = (
    Words("Where the stream forks (dot), its gradient is a sum:", "残差流在分叉处（圆点）的梯度是两项之和："),
    Words("one part comes through the +, one through the branch.", "一项来自 +，一项来自分支。"),
)
TRUNK, DETOUR, LEFT, CELLS, CELL, ROW = 36.0, 92.0, 106.0, 304.0, (46.0, 22.0), 38.0
INTO = (LEFT + CELLS) / 2  # middle of the arrows that enter an equation


def size(array: Any) -> str:
    """Return the root mean square of an array."""
    return decimal(float(np.sqrt(np.mean(np.square(array)))), 3)


def sizes(name: str) -> tuple[str, str]:
    """Return the sizes of an array's value and gradient."""
    gradients = pass_of("paper-gpt")
    return size(gradients.trace.values[name]), size(gradients.by_name[name])


def parts(stream: Tensor) -> list[float]:
    """Return the part of the element's gradient from each use of the stream: the sum's, then the branch's."""
    gradients = pass_of("paper-gpt")
    return [use.term.value for use in gradients.answer(gradients.trace.name(stream), ELEMENT).uses]


def added(stream: Tensor) -> str:
    """Write the addition of gradients at a place where the stream forks."""
    trace = pass_of("paper-gpt").trace
    place = element_name(
        trace.name(stream).removeprefix(BLOCK), ELEMENT[1:]
    )  # as the lesson has it, of the only sequence
    found = parts(stream)
    return f"∂{place} = {' + '.join(_signed(part) for part in found)} = {decimal(sum(found), 3)}"


def _signed(part: float) -> str:
    text = decimal(part, 3)
    return f"({text})" if part < 0 else text


def in_words(lang: str) -> str:
    """Say the sizes, and the two additions."""
    block = block_of(pass_of("paper-gpt").trace)
    names = ["x", *(name for application in block for name in application.result_names())]
    said = [f"{name.removeprefix(BLOCK)} {' / '.join(sizes(name))}" for name in names]
    forks = [added(stream) for stream in stream_of(block)[:-1]]
    start = Words("Size of each value / of its gradient in a block. ", "一个块中各个值的大小 / 其梯度的大小。")
    at = Words(". Gradients add where the stream forks: ", "。残差流分叉处梯度相加：").said(lang)
    semicolon = SEMICOLON.said(lang)
    return start.said(lang) + semicolon.join(said) + at + semicolon.join(forks)


@picture(
    Words("The graph of one block, with sizes of values and gradients", "一个块的计算图：值与梯度的大小"), in_words
)
def block_graph(canvas: Canvas) -> None:
    """Each application with its result's sizes, from the stream that enters to the stream that leaves."""
    _Drawing(canvas).draw()


class _Drawing:
    """The stream down the left side, the applications down the right."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas, self.trace = canvas, pass_of("paper-gpt").trace
        self.block = block_of(self.trace)
        self.trunk, self.values_leave = 0.0, 0.0

    def draw(self) -> None:
        """Draw the block."""
        canvas, stream = self.canvas, stream_of(self.block)
        said = Words("root mean square of", "均方根")
        canvas.text(CELLS - 8, 14, said, at="end", size=SMALL)
        canvas.text(CELLS + CELL[0] / 2, 14, Words("value", "值"), at="middle", size=SMALL)
        canvas.text(CELLS + 1.5 * CELL[0], 14, Words("grad", "梯度"), at="middle", size=SMALL)
        canvas.y = self.trunk = 22.0
        self.numbers("x", 0)
        canvas.text(TRUNK + 12, canvas.y + 16, "x", bold=True)
        self.fork(stream[0])
        for application in self.block:
            if application.equation.name == "residual":
                self.join(application)
                if application.results[0] is not stream[-1]:
                    self.fork(application.results[0])
            else:
                self.equation(application)
        canvas.y += CELL[1] + 16
        canvas.arrow([(TRUNK, self.trunk), (TRUNK, canvas.y - 4)], colour=BLUE, thick=3)
        canvas.text_lines(4, canvas.y + 14, FORKS, 16, SMALL)
        canvas.y += 38

    def numbers(self, name: str, row: int) -> None:
        """Write the sizes of an array's value and gradient."""
        y = self.canvas.y + row * CELL[1]
        for i, (words, fill) in enumerate(zip(sizes(name), (BLUE, RUST), strict=True)):
            self.canvas.box(CELLS + i * CELL[0] + 1, y + 1, CELL[0] - 2, CELL[1] - 2, words, fill=fill, size=SMALL)

    def fork(self, stream: Tensor) -> None:
        """Show the addition of gradients where a branch leaves the stream."""
        canvas = self.canvas
        canvas.y += CELL[1] + 10
        canvas.box(LEFT, canvas.y, 2 * CELL[0] + CELLS - LEFT, 22, added(stream), fill=RUST, size=SMALL)
        canvas.line([(TRUNK, canvas.y + 11), (LEFT, canvas.y + 11)])
        canvas.dot(TRUNK, canvas.y + 11, 5, BLUE)
        canvas.arrow([(INTO, canvas.y + 22), (INTO, canvas.y + 38)])
        canvas.y += 38

    def equation(self, application: Application) -> None:
        """Draw an application with its results, and the arrow on to the next."""
        canvas = self.canvas
        names = application.result_names()
        short = ", ".join(name.rpartition(".")[2] for name in names)
        words = f"{short} = {application.equation.name}"
        high = CELL[1] * len(names)
        canvas.box(LEFT, canvas.y, CELLS - LEFT - 4, high, words, round_by=11, size=SMALL)
        for row, name in enumerate(names):
            self.numbers(name, row)
            if len(names) > 1:
                letter = name.rpartition(".")[2]
                canvas.text(CELLS - 14, canvas.y + (row + 0.5) * CELL[1] + 4, letter, at="end", bold=True)
        if len(names) > 1:
            self.values_leave = canvas.y + high - CELL[1] / 2
        elif self.values_leave and any(t.name.endswith(".2") for t in application.inputs):
            middle = canvas.y + CELL[1] / 2
            canvas.arrow([(LEFT, self.values_leave), (DETOUR, self.values_leave), (DETOUR, middle), (LEFT, middle)])
            canvas.text(DETOUR - 8, (self.values_leave + middle) / 2, "v", at="end", bold=True)
        canvas.y += high
        canvas.arrow([(INTO, canvas.y), (INTO, canvas.y + ROW - CELL[1])])
        canvas.y += ROW - CELL[1]

    def join(self, residual: Application) -> None:
        """Add the branch to the stream."""
        canvas = self.canvas
        y = canvas.y + CELL[1] / 2
        name = residual.result_names()[0]
        canvas.arrow([(TRUNK, self.trunk), (TRUNK, y - 10)], colour=BLUE, thick=3)
        canvas.ring(TRUNK, y, 10, "+", line=BLUE)
        self.trunk = y + 10
        words = f"{name.removeprefix(BLOCK)} = residual"
        canvas.box(LEFT, canvas.y, CELLS - LEFT - 4, CELL[1], words, round_by=11, size=SMALL)
        canvas.arrow([(LEFT, y), (TRUNK + 11, y)])
        self.numbers(name, 0)
