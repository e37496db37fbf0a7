"""Recorded graphs with every number: six nodes, and the 2 x 2 core from its input to the loss and back."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from byhand.book.lessons.examples import numbers
from byhand.book.lessons.examples.nudges import GRAPH, START, graph
from byhand.book.lessons.letters import called
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, SMALL, TINY
from byhand.book.pictures.passes import in_line, pass_of, rows_of
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.cells import Cells
from byhand.book.pictures.scene.elements import Box, Key, Sign, Space
from byhand.book.pictures.scene.figure import Caption, Figure
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


ARROW = Words("∂Q ↑ X W_Q: back through the step Q = X W_Q", "∂Q ↑ X W_Q：往回穿过 Q = X W_Q 这一步")
DIGITS = 5  # the steps beside these pictures print 0.66145
FORMULAS = {
    **{name: f"X W_{name}" for name in "QKV"}, "S": "Q Kᵀ / √D", "P": "softmax(S)", "O": "P V", "z": "e_0 O",
    "loss": "−ln p_0",
}  # fmt: skip
WIDER = {"S": 164, "P": 164, "loss": 164}  # long formulas
SIDES = {  # of an input that an edge leaves, and of the equation that it enters, where these are not bottom and top
    ("X", "Q"): ("left", "right"), ("X", "K"): ("left", "left"), ("X", "V"): ("right", "left"),
    ("V", "O"): ("bottom", "right"), ("O", "z"): ("bottom", "left"), ("targets", "loss"): ("right", "left"),
}  # fmt: skip


def _core(back: bool) -> Column:
    """Return every array in its place, and every edge as the recorded graph has it, forward or back."""
    node = partial(_array, back=back)
    q, k, v = (Column([node(f"W_{name}"), node(name)], gap=22) for name in "QKV")
    attention = Column([Across([q, k]), *map(node, "SPO")], gap=22)
    middle = Across([attention, v], widths=(264, None), gap=0, top=True)
    chosen = Column([_text("e_0"), node("z")], gap=18)
    cost = Across([Space(), _text("targets", "end"), node("loss")], widths=(40, None, 172), gap=20)
    if back:
        signs = [Sign(Words("∂S: gradient of L with respect to S", "∂S：L 对 S 的梯度"), RUST)]
    else:
        signs = [Sign(Words("values", "值"), BLUE), Sign(Words("learned weights", "可学习的权重"), GREEN)]
    parts = [node("X"), middle, Across([Space(), chosen], widths=(264, None), gap=0), cost, Key(signs, at="start")]
    parts += [Caption(ARROW)] if back else []
    return Column(parts, gap=22, links=_links(back))


def _links(back: bool) -> list[Link]:
    trace, links = pass_of("matrix-core").trace, []
    for application in trace.applications:
        (result,) = application.result_names()
        for tensor in application.inputs:
            name, passed = trace.name(tensor), tensor.requires_grad or not back
            leave, enter = SIDES.get((name, result), ("bottom", "top"))
            links.append(Link(name, f"{result} =", leave, enter, dashed=not passed, head=passed, back=back))
    return links


def _array(name: str, back: bool) -> Figure:
    """Return an array below its equation, or below its name where it is given."""
    gradients = pass_of("matrix-core")
    if back and name == "X":
        return Box(Words("X: no gradient", "X：无需梯度"), dashed=True, wide=108, high=36, name=name, says="")
    array = (gradients.by_name if back else gradients.trace.values)[name]
    own, made = f"∂{name}" if back else name, gradients.trace.made.get(name)
    fill = RUST if back else GREEN if name.startswith("W") else BLUE
    cells = Cells(rows_of(array, DIGITS), fill, cell=(58, 18), size=SMALL)
    wide = WIDER.get(name, 108)
    label = called(own)
    head = Caption(label, bold=True)
    if made:
        equation = f"{label} {'↑' if back else '='} {FORMULAS[name]}"
        head = Box(equation, round_by=11, wide=wide, name=f"{name} =")
    return Column([head, cells], gap=2, name=name, says=f"{label} = {in_line(array, DIGITS)}", shows=own)


def _text(name: str, at: str = "middle") -> Caption:
    """Return an input that is written as text."""
    value = pass_of("matrix-core").trace.tensor(name).data
    return Caption(f"{called(name)} = [{', '.join(rows_of(value)[0])}]", name=name, at=at, says="", shows=name)


@scene("The 2 × 2 core from X to the loss: values", "2 × 2 矩阵核心：从 X 到损失的各个值")
def core_forward() -> Column:
    """Every equation as it is recorded, with its result."""
    return _core(back=False)


@scene("The 2 × 2 core from the loss back: gradients", "2 × 2 矩阵核心：从损失反向传回的梯度")
def core_backward() -> Column:
    """The same graph from the loss back, with the derivative of the loss with respect to each array."""
    return _core(back=True)
