"""The graph of the lesson `nudges`: six nodes, each with its value and its gradient."""

from __future__ import annotations

from itertools import pairwise

from byhand.book.lessons.examples import numbers
from byhand.book.lessons.examples.nudges import GRAPH, START, graph
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, RUST, TINY
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.cells import Cells
from byhand.book.pictures.scene.elements import Key, Sign
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column, Link
from byhand.book.words.language import Words
from byhand.tracing.gradients import Gradients

CELL = (62, 22)
MADE = ("", "", "a × b", "c + a", f"d − {START['goal']}", f"{GRAPH[-2]} × {GRAPH[-2]}")
LINKS = (("a", "c", "left"), ("b", "c", "left"), ("a", "d", "top"), *((a, b, "left") for a, b in pairwise(GRAPH[2:])))


def _node(name: str, made: str, found: Gradients) -> Column:
    """Return a number's equation above its value and its gradient."""
    value, slope = (decimal(float(of[name][0])) for of in (found.trace.values, found.by_name))
    equation = f"{name} = {made}" if made else name
    cells = [Cells([[number]], fill, cell=CELL) for number, fill in ((value, BLUE), (slope, RUST))]
    head = Caption(equation, bold=True, size=TINY, at="middle")
    return Column([head, *cells], gap=0, name=name, says=f"{equation} = {value}, ∂{name} = {slope}")


@scene("Six numbers with value and gradient", "六个数的值与梯度")
def six_nodes() -> Column:
    """Arrows run forward."""
    walked = graph(numbers(exact=False))
    a, b, *others = (_node(name, made, walked) for name, made in zip(GRAPH, MADE, strict=True))
    nodes = Across([Column([a, b], gap=22), *others], widths=(CELL[0],) * 5, gap=18)
    slope = Words("gradient: change of L per change", "梯度：L 对这个数的导数")
    key = Key([Sign(Words("value", "值"), BLUE), Sign(slope, RUST)], at="start")
    return Column([Column([nodes], links=[Link(a, b, "right", enter) for a, b, enter in LINKS]), key], gap=16)
