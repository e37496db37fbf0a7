"""The graph of the lesson `nudges`: six nodes, each with its value and its gradient."""

from __future__ import annotations

from functools import cache

from byhand.book.lessons.examples import numbers
from byhand.book.lessons.examples.nudges import GRAPH, START, graph
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, RUST, TINY, Canvas
from byhand.book.pictures.picture import picture
from byhand.book.words.language import SEMICOLON, Words
from byhand.tracing.gradients import Gradients

CELL = (62.0, 22.0)
APART = 80.0  # from one column of nodes to the next
TITLES = {"a": "a", "b": "b", "c": "c = a × b", "d": "d = c + a", "r": f"r = d − {START['goal']}", "L": "L = r × r"}
PLACES = {"a": (6, 30), "b": (6, 120), **{name: (6 + APART * k, 75) for k, name in enumerate("cdrL", 1)}}


@cache
def _walked() -> Gradients:
    return graph(numbers(exact=False))


def _pairs() -> dict[str, tuple[str, str]]:
    found = _walked()
    return {
        name: (decimal(float(found.trace.values[name][0])), decimal(float(found.by_name[name][0]))) for name in GRAPH
    }


def six_nodes_in_words(lang: str) -> str:
    """Say each node's equation, value and gradient."""
    start = Words("Six numbers with value and gradient. ", "六个数及其值与梯度。")
    said = (
        f"{TITLES[name]} = {value}{Words(', ', '，').said(lang)}∂{name} = {slope}"
        for name, (value, slope) in _pairs().items()
    )
    return start.said(lang) + SEMICOLON.said(lang).join(said) + Words(".", "。").said(lang)


@picture(Words("Six numbers with value and gradient", "六个数的值与梯度"), six_nodes_in_words)
def six_nodes(canvas: Canvas) -> None:
    """Every node's equation above its value and its gradient; arrows run forward."""
    for name, (x, y) in PLACES.items():
        value, slope = _pairs()[name]
        canvas.text(x + CELL[0] / 2, y - 6, TITLES[name], at="middle", size=TINY, bold=True)
        canvas.matrix(x, y, [[value]], BLUE, cell=CELL)
        canvas.matrix(x, y + CELL[1], [[slope]], RUST, cell=CELL)
    right, middle = {name: x + CELL[0] for name, (x, _) in PLACES.items()}, 75 + CELL[1]
    for one, other in (("c", "d"), ("d", "r"), ("r", "L")):
        canvas.arrow([(right[one] + 2, middle), (PLACES[other][0] - 2, middle)])
    canvas.arrow([(right["a"] + 2, 60), (PLACES["c"][0] - 2, middle - 8)])
    canvas.arrow([(right["b"] + 2, 130), (PLACES["c"][0] - 2, middle + 8)])
    above = PLACES["d"][0] + CELL[0] / 2
    canvas.arrow([(right["a"] + 2, 38), (above, 38), (above, 56)])
    canvas.swatch(6, 190, Words("value", "值"), BLUE)
    canvas.swatch(96, 190, Words("gradient: change of L per change", "梯度：L 与此数的变化之比"), RUST)
    canvas.y = 200
