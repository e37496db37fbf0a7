"""The recorded graph of the 2 x 2 core: forward with values, backward with gradients."""

from __future__ import annotations

from functools import partial
from typing import Any

from byhand.book.pictures.canvas import BLUE, GREEN, RUST, SMALL, Canvas
from byhand.book.pictures.passes import in_line, pass_of, rows_of
from byhand.book.pictures.picture import picture
from byhand.book.words.language import SEMICOLON, Words

CELL = 54.0, 18.0
WIDE, PILL = 2 * CELL[0], 22.0
LEFT, MIDDLE, RIGHT, BETWEEN = 58.0, 200.0, 342.0, 129.0  # middles of columns
PLACES = {  # of each array: the middle of its column and the top of its numbers; its equation stands above
    "X": (MIDDLE, 16), "W_Q": (LEFT, 88), "W_K": (MIDDLE, 88), "W_V": (RIGHT, 88), "Q": (LEFT, 172),
    "K": (MIDDLE, 172), "V": (RIGHT, 172), "S": (BETWEEN, 264), "P": (BETWEEN, 342), "O": (BETWEEN, 420),
    "z": (RIGHT, 486), "loss": (RIGHT, 546),
}  # fmt: skip
WIDER = {"S": 164, "loss": 164}  # equations with long names
BESIDE = {"e_0": (RIGHT, 436, "middle"), "targets": (208, 537, "end")}  # inputs that are written as text
GAP_LEFT, GAP_RIGHT = 129.0, 271.0
ROUTES = {  # of each edge, from an input to the equation that reads it
    ("X", "Q"): ((146, 34), (GAP_LEFT, 34), (GAP_LEFT, 159), (112, 159)),
    ("X", "K"): ((146, 34), (GAP_LEFT, 34), (GAP_LEFT, 159), (146, 159)),
    ("X", "V"): ((254, 34), (GAP_RIGHT, 34), (GAP_RIGHT, 159), (288, 159)),
    ("W_Q", "Q"): ((LEFT, 126), (LEFT, 148)), ("W_K", "K"): ((MIDDLE, 126), (MIDDLE, 148)),
    ("W_V", "V"): ((RIGHT, 126), (RIGHT, 148)), ("Q", "S"): ((LEFT, 210), (LEFT, 224), (92, 224), (92, 240)),
    ("K", "S"): ((MIDDLE, 210), (MIDDLE, 224), (166, 224), (166, 240)), ("S", "P"): ((BETWEEN, 302), (BETWEEN, 318)),
    ("P", "O"): ((BETWEEN, 380), (BETWEEN, 396)), ("V", "O"): ((RIGHT, 210), (RIGHT, 407), (185, 407)),
    ("O", "z"): ((BETWEEN, 458), (BETWEEN, 473), (288, 473)), ("e_0", "z"): ((RIGHT, 442), (RIGHT, 462)),
    ("z", "loss"): ((RIGHT, 506), (RIGHT, 522)), ("targets", "loss"): ((212, 533), (232, 533)),
}  # fmt: skip


def arrays(back: bool) -> dict[str, Any]:
    """Return the core's values by name, or their gradients."""
    gradients = pass_of("matrix-core")
    return gradients.by_name if back else gradients.trace.values


def in_words(back: bool, lang: str) -> str:
    """Say each array."""
    order = [name for name in reversed(PLACES) if name != "X"] if back else PLACES
    mark = "∂" if back else ""
    said = SEMICOLON.said(lang).join(f"{mark}{name} = {in_line(arrays(back)[name])}" for name in order)
    if back:
        start = Words("Gradients of the 2 × 2 core, from the loss back. ", "2 × 2 矩阵核心中从损失反向传回的梯度。")
    else:
        start = Words("Values of the 2 × 2 core, from X to the loss. ", "2 × 2 矩阵核心中从 X 到损失的各个值。")
    return start.said(lang) + said


def draw_graph(canvas: Canvas, back: bool) -> None:
    """Draw every array in its place, and every edge as the recorded graph has it, forward or back."""
    trace = pass_of("matrix-core").trace
    for application in trace.applications:
        (result,) = application.result_names()
        for tensor in application.inputs:
            name = trace.name(tensor)
            route = ROUTES[name, result]
            if tensor.requires_grad or not back:
                canvas.arrow(route[::-1] if back else route)
            else:
                canvas.line(route, dashed=True)
            if name in BESIDE:
                x, y, at = BESIDE[name]
                canvas.text(x, y, f"{name} = [{', '.join(rows_of(tensor.data)[0])}]", at=at, size=SMALL)
    for name, (x, y) in PLACES.items():
        label = f"∂{name}" if back else name
        if name in trace.made:
            equation = trace.made[name][0].equation.name
            words, width = f"{label} {'↑' if back else '='} {equation}", WIDER.get(name, WIDE)
            left = min(x - width / 2, canvas.width - 4 - width)
            canvas.box(left, y - 24, width, PILL, words, round_by=11, size=SMALL)
        elif not back or name != "X":
            canvas.text(x - WIDE / 2, y - 4, label, bold=True)
        _numbers(canvas, name, x, y, back)
    canvas.y = PLACES["loss"][1] + CELL[1] + 6


def _numbers(canvas: Canvas, name: str, x: float, y: float, back: bool) -> None:
    if back and name == "X":
        canvas.box(x - WIDE / 2, y, WIDE, 36, Words("X: no gradient", "X：无需梯度"), dashed=True, size=SMALL)
        return
    rows = rows_of(arrays(back)[name])
    fill = RUST if back else GREEN if name.startswith("W") else BLUE
    canvas.matrix(x - len(rows[0]) * CELL[0] / 2, y, rows, fill, cell=CELL)


@picture(Words("Forward graph of the 2 × 2 core", "2 × 2 矩阵核心的前向计算图"), partial(in_words, False))
def core_forward(canvas: Canvas) -> None:
    """Every equation as it is recorded, with its result."""
    draw_graph(canvas, back=False)
    canvas.swatch(4, 502, Words("values", "值"), BLUE)
    canvas.swatch(4, 520, Words("learned weights", "可学习的权重"), GREEN)


@picture(Words("Backward graph of the 2 × 2 core", "2 × 2 矩阵核心的反向计算图"), partial(in_words, True))
def core_backward(canvas: Canvas) -> None:
    """The same graph from the loss back, with the derivative of the loss with respect to each array."""
    draw_graph(canvas, back=True)
    canvas.swatch(4, 502, Words("∂S is short for", "∂S 即损失"), RUST)
    canvas.text(22, 520, Words("d loss / d S", "对 S 的导数"), size=SMALL)
