"""The lesson `classifier` as a picture: the patterns of the hidden units, and each bar on its way."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from byhand.book.lessons.examples.classifier import CLASSES, PICTURES, WEIGHTS, given_weights, loss_of
from byhand.book.numbers.closed_form import array
from byhand.book.pictures.canvas import SMALL, TINY, Canvas
from byhand.book.pictures.heat import frame, heat
from byhand.book.pictures.picture import picture, row, sentence
from byhand.book.words.language import COMMA, Words
from byhand.equations.softmax import softmax
from byhand.tracing.trace import Trace

PATTERN, PIXEL, UNITS, SHARES, HIGH = (34, 30), (24, 24), (40, 30), (64, 30), 66
PICTURE_AT, HIDDEN_AT, P_AT = 60, 146, 264
BARS = (Words("left", "左"), Words("right", "右"), Words("top", "上"), Words("bottom", "下"))
UNIT = Words("hidden unit {n}", "隐藏单元 {n}")


@cache
def computed() -> tuple[np.ndarray, np.ndarray]:
    """Return the hidden units and the probabilities of the four pictures before training."""
    values = Trace.of(partial(loss_of, given_weights(array), array)).values
    return values["h"], np.round(softmax.forward(values["z"])[0], 6)


def in_words(lang: str) -> str:
    """Say the patterns, then the hidden units and probabilities of each picture."""
    start = Words(
        "The four bars on their way through the network, before training. ", "训练之前，四条线依次通过网络。"
    )
    said = [row(lang, UNIT.said(lang, n=n), pattern) for n, pattern in enumerate(zip(*WEIGHTS["W_1"], strict=True))]
    for bar, units, p in zip(BARS, *computed(), strict=True):
        said.append(row(lang, bar.said(lang) + " h", units) + COMMA.said(lang) + row(lang, "p", p))
    return sentence(lang, start, said)


@picture(Words("Four bars through the network", "四条线通过网络"), in_words)
def bars_through_the_network(canvas: Canvas) -> None:
    """The columns of W_1 as patterns of pixels; then each bar, its hidden units and its probabilities."""
    canvas.text(4, 14, Words("patterns: the columns of W_1", "图样：W_1 的各列"), size=SMALL, bold=True)
    for n, pattern in enumerate(array(WEIGHTS["W_1"]).T):
        left = (66, 226)[n]
        heat(canvas, left, 26, pattern.reshape(2, 2).tolist(), cell=PATTERN)
        canvas.text(left + 76, 60, UNIT.said(canvas.lang, n=n), size=TINY)
    top = 26 + 2 * PATTERN[1] + 48
    for x, words in (
        (PICTURE_AT + PIXEL[0], Words("pixels X", "像素 X")),
        (HIDDEN_AT + UNITS[0], Words("units h", "单元 h")),
        (P_AT + SHARES[0], Words("probabilities p", "概率 p")),
    ):
        canvas.text(x, top - 24, words, at="middle", size=SMALL, bold=True)
    columns = Words("vertical", "竖线"), Words("horizontal", "横线")
    units, p = computed()
    for n, (bar, pixels) in enumerate(zip(BARS, PICTURES, strict=True)):
        y = top + n * HIGH
        middle = y + PIXEL[1]
        canvas.text(PICTURE_AT - 8, middle + 4, bar, at="end", size=TINY)
        heat(canvas, PICTURE_AT, y, [pixels[:2], pixels[2:]], cell=PIXEL, shown=lambda value: "")
        for x, found, cell, said in ((HIDDEN_AT, units, UNITS, ("0", "1")), (P_AT, p, SHARES, columns)):
            canvas.arrow([(x - 30, middle), (x - 6, middle)])
            heat(
                canvas,
                x,
                middle - cell[1] / 2,
                [found[n].tolist()],
                cell=cell,
                largest=float(found.max()),
                columns_said=() if n else said,
            )
        frame(canvas, P_AT + CLASSES[n] * SHARES[0], middle - SHARES[1] / 2, *SHARES)
    canvas.y = top + len(BARS) * HIGH
    canvas.text(4, canvas.y, Words("Framed: the right class.", "带框的是正确的类别。"), size=SMALL)
    canvas.y += 10
