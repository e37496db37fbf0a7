"""Attention as a flow of matrices: the 2 x 2 core, and the effects of a mask and of more heads."""

from __future__ import annotations

from typing import Any

from byhand.book.pictures.canvas import BLUE, GREEN, SMALL, Canvas
from byhand.book.pictures.passes import in_line, pass_of, rows_of
from byhand.book.pictures.picture import picture
from byhand.book.words.language import SEMICOLON, Said, Words
from byhand.equations.causal_softmax import causal_softmax

CELL = 52.0, 20.0
MATRIX = 2 * CELL[0]
COLUMNS = 4.0, 148.0, 292.0  # left edges of three matrices
MIDDLE, SCORES = COLUMNS[1], 56.0


def values() -> dict[str, Any]:
    """Return the core's matrices, and its weights as a causal mask would make them."""
    arrays = pass_of("matrix-core").trace.values
    return arrays | {"masked": causal_softmax.forward(arrays["S"])[0]}


def in_words(lang: str) -> str:
    """Say each matrix."""
    names = {"S": "S = Q Kᵀ / √2", "P": "P = softmax(S)", "O": "O = P V"}
    arrays = values()
    said = [f"{names.get(name, name)} = {in_line(arrays[name])}" for name in ("X", "Q", "K", "V", "S", "P", "O")]
    masked = Words("with a causal mask P would be ", "若有因果掩码，P 为 ").said(lang) + in_line(arrays["masked"])
    start = Words("Attention of the 2 × 2 core. ", "2 × 2 矩阵核心的注意力。").said(lang)
    return start + SEMICOLON.said(lang).join([*said, masked])


@picture(Words("Attention, from X to the mixed values", "注意力：从 X 到混合后的值"), in_words)
def attention_flow(canvas: Canvas) -> None:
    """X gives Q, K and V; these give scores, weights, and the mixed values of each token."""
    arrays = values()
    _matrix(canvas, MIDDLE, arrays["X"], "X")
    canvas.text(COLUMNS[2], canvas.y - 14, Words("a row per token", "每行一个词元"), size=SMALL)
    top = canvas.y
    for x, name in zip(COLUMNS, "QKV", strict=True):
        canvas.y = top
        _arrow(canvas, MIDDLE, x, 18)
        canvas.box(x, canvas.y, MATRIX, 20, f"× W_{name}", fill=GREEN, size=SMALL)
        canvas.y += 20
        _arrow(canvas, x, x, 14)
        _matrix(canvas, x, arrays[name], name)
    top = canvas.y
    for x in COLUMNS[:2]:
        canvas.y = top
        _arrow(canvas, x, SCORES, 18)
    _operation(canvas, "Q Kᵀ / √D", Words("D = 2 columns", "D = 2 列"))
    _matrix(canvas, SCORES, arrays["S"], "S")
    _arrow(canvas, SCORES, SCORES, 14)
    _operation(canvas, Words("mask", "掩码"), Words("none in the core", "矩阵核心里没有"), dashed=True)
    _arrow(canvas, SCORES, SCORES, 14)
    _operation(canvas, "softmax", Words("each row sums to 1", "每行之和为 1"))
    beside = canvas.y
    _matrix(canvas, SCORES, arrays["P"], "P")
    below, canvas.y = canvas.y, beside
    _matrix(canvas, SCORES + MATRIX + 40, arrays["masked"], Words("P if masked", "有掩码时的 P"), dashed=True)
    canvas.y = below
    _arrow(canvas, SCORES, SCORES, 18)
    x = COLUMNS[2] + MATRIX - 8
    canvas.arrow([(x, top + 2), (x, canvas.y + 11), (SCORES + MATRIX, canvas.y + 11)])
    _operation(canvas, "P V", "")
    _matrix(canvas, SCORES, arrays["O"], "O")
    _arrow(canvas, SCORES, SCORES, 14)
    _operation(
        canvas, Words("join heads", "拼接各头"), Words("one head in the core", "矩阵核心只有一个头"), dashed=True
    )
    canvas.y += 4


def _matrix(canvas: Canvas, x: float, array: Any, name: Said, dashed: bool = False) -> None:
    """Draw a matrix with its name above: in colour, or dashed if the core does not have it."""
    canvas.y += 4
    canvas.text(x, canvas.y + 12, name, bold=True)
    fill = "none" if dashed else BLUE
    canvas.y = canvas.matrix(x, canvas.y + 16, rows_of(array), fill, cell=CELL, dashed=dashed)


def _arrow(canvas: Canvas, start: float, end: float, down: float) -> None:
    """Draw an arrow from below one matrix to above another."""
    half, bottom = MATRIX / 2, canvas.y + down
    bend = canvas.y + down / 2 - 2
    canvas.arrow([(start + half, canvas.y + 2), (start + half, bend), (end + half, bend), (end + half, bottom)])
    canvas.y = bottom


def _operation(canvas: Canvas, name: Said, remark: Said, dashed: bool = False) -> None:
    """Draw an operation, with a remark at its right."""
    canvas.box(SCORES, canvas.y, MATRIX, 22, name, round_by=11, dashed=dashed)
    canvas.text(SCORES + MATRIX + 10, canvas.y + 15, remark, size=SMALL)
    canvas.y += 22
