"""The lesson `classifier` as a picture: the patterns of the hidden units, and each bar on its way."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from byhand.book.lessons.examples.classifier import CLASSES, PICTURES, WEIGHTS, given_weights, loss_of
from byhand.book.numbers.arithmetic import decimal
from byhand.book.numbers.closed_form import array
from byhand.book.pictures.canvas import TINY
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.cells import HEAT, Cells, Frame
from byhand.book.pictures.scene.elements import Arrow, Space, told
from byhand.book.pictures.scene.figure import Caption
from byhand.book.pictures.scene.groups import Across, Column
from byhand.book.words.language import Words
from byhand.equations.softmax import softmax
from byhand.tracing.trace import Trace

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
