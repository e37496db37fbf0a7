"""The graph of the lesson `nudges`: six nodes, each with its value and its gradient."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from byhand.book.lessons.examples import numbers
from byhand.book.lessons.examples.nudges import GRAPH, START, graph
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, RUST, TINY
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Across, Caption, Cells, Column, Key, Link, Sign
from byhand.book.words.language import Words
from byhand.tracing.gradients import Gradients

CELL = (62, 22)
MADE: dict[str, str] = dict(
    zip(map(str, GRAPH), ("", "", "a × b", "c + a", f"d − {START['goal']}", "{0} × {0}"), strict=True)
)
LINKS = (
    Link("a", "c", "right", "left"), Link("b", "c", "right", "left"), Link("a", "d", "right", "top"),
    *(Link(one, other, "right", "left") for one, other in pairwise(GRAPH[2:])),
)  # fmt: skip


@cache
def _walked() -> Gradients:
    return graph(numbers(exact=False))


def _node(name: str) -> Column:
    """Return a number's equation above its value and its gradient."""
    found, made = _walked(), MADE[name].format(GRAPH[-2])
    value, slope = (decimal(float(of[name][0])) for of in (found.trace.values, found.by_name))
    equation = f"{name} = {made}" if made else name
    cells = [Cells([[number]], fill, cell=CELL) for number, fill in ((value, BLUE), (slope, RUST))]
    head = Caption(equation, bold=True, size=TINY, at="middle")
    return Column([head, *cells], gap=0, name=name, says=f"{equation} = {value}, ∂{name} = {slope}")


@scene(
    Words("Six numbers with value and gradient", "六个数的值与梯度"),
    Words("Six numbers with value and gradient. ", "六个数及其值与梯度。"),
)
def six_nodes() -> Column:
    """Arrows run forward."""
    given = Column([_node(name) for name in GRAPH[:2]], gap=22)
    nodes = Across([given, *(_node(name) for name in GRAPH[2:])], widths=(CELL[0],) * 5, gap=18)
    slope = Words("gradient: change of L per change", "梯度：L 对此数的变化率")
    key = Key([Sign(Words("value", "值"), BLUE), Sign(slope, RUST)], at="start")
    return Column([Column([nodes], links=LINKS, pad=0), key], gap=16)
