"""Attention as a flow of matrices: the 2 x 2 core, and the effects of a mask and of more heads."""

from __future__ import annotations

from typing import Any

from byhand.book.pictures.canvas import GREEN, SMALL
from byhand.book.pictures.passes import in_line, pass_of, rows_of
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Across, Arrow, Box, Caption, Cells, Column, Figure, Link, Space, flow
from byhand.book.words.language import Said, Words, say
from byhand.equations.causal_softmax import causal_softmax


def values() -> dict[str, Any]:
    """Return the core's matrices, and its weights as a causal mask would make them."""
    arrays = pass_of("matrix-core").trace.values
    return arrays | {"masked": causal_softmax.forward(arrays["S"])[0]}


@scene("Attention of the 2 × 2 core, from X to O", "2 × 2 矩阵核心的注意力：从 X 到 O")
def attention_flow() -> Column:
    """X gives Q, K and V; these give scores, weights, and the mixed values of each token."""
    first = Across([Space(), _matrix("X"), Caption(Words("a row per token", "每行一个词元"))], widths=(None,) * 3)
    projected = [flow(Box(f"× W_{n}", GREEN, name=f"W_{n}", wide=104, says=""), _matrix(n)) for n in "QKV"]
    masked = _matrix("masked", Words("P if masked", "有掩码时的 P"), dashed=True)
    lines = [
        _line(_operation("Q Kᵀ / √D", "mixes"), Words("D = 2 columns", "D = 2 列")),
        _line(_matrix("S", "S = Q Kᵀ / √2")), _line(Arrow()),
        _line(_operation(Words("mask", "掩码"), dashed=True), Words("none in the core", "矩阵核心里没有")),
        _line(Arrow()),
        _line(_operation("softmax"), Words("each row sums to 1", "每行之和为 1")),
        Across([_matrix("P", "P = softmax(S)"), masked], widths=(170, 150)), _line(Arrow()),
        _line(_operation("P V", "PV")),
        _line(_matrix("O", "O = P V")), _line(Arrow()),
        _line(_operation(Words("join heads", "拼接各头"), dashed=True),
              Words("one head in the core", "矩阵核心只有一个头")),
    ]  # fmt: skip
    links = [*(Link("X", f"W_{name}") for name in "QKV"), Link("Q", "mixes"), Link("K", "mixes"),
             Link("V", "PV", "bottom", "right")]  # fmt: skip
    return Column([first, Space(14), Across(projected), Space(14), Column(lines, gap=3)], gap=2, links=links)


def _matrix(name: str, title: Said = "", dashed: bool = False) -> Cells:
    """Return a matrix of the core: in colour, or dashed if the core does not have it."""
    rows = values()[name]
    said = Words(*(f"{say(title or name, lang)} = {in_line(rows)}" for lang in ("en", "zh")))
    return Cells(rows_of(rows), cell=(52, 20), size=SMALL, dashed=dashed, title=title if dashed else name, says=said,
                 at="middle", name=name)  # fmt: skip


def _operation(words: Said, name: str = "", dashed: bool = False) -> Box:
    return Box(words, round_by=11, dashed=dashed, wide=104, name=name, says="")


def _line(element: Figure, remark: Said = "") -> Across:
    """Return what stands on the way down, with a remark beside it."""
    return Across([element, Caption(remark, says="")], widths=(170, 150))
