"""Generated tables that set equations beside each other: the same numbers in, what each makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding import index
from byhand.book.numbers.closed_form import array
from byhand.book.pages.blocks.markdown import block, table
from byhand.book.words.language import Words
from byhand.engine import registry
from byhand.equations.layer_norm import layer_norm
from byhand.equations.rms_norm import rms_norm


@block
def values_and_slopes(page: Path, lang: str, stems: str, *places: str) -> str:
    """Functions of one number, joined by + signs, and their slopes at some places; settings as worked by hand."""
    xs = np.array([float(place) for place in places])
    columns, head = [], Words("x", "x")
    for stem in stems.split("+"):
        equation, static = registry[stem], ENTRIES[stem].static
        y, saved = equation.forward(xs, **static)
        columns += [y, equation.vjp(saved, np.ones_like(xs), **static)[0]]
        title = index.listings()[stem].title
        head = Words(f"{head.en}|{title.en}|Slope", f"{head.zh}|{title.zh}|斜率")
    rows = zip(*columns, strict=True)
    return table(head, ((f"{x:g}", *(f"{v + 0.0:.6f}" for v in row)) for x, row in zip(xs, rows, strict=True)), lang)


@block
def norms_beside(page: Path, lang: str) -> str:
    """LayerNorm and RMSNorm of the row that LayerNorm's example works by hand, and of the row moved and stretched."""
    (x,) = array(ENTRIES["layer_norm"].inputs["x"])
    rows = [
        (Words("as it is", "原样"), x),
        (Words("times 10", "乘以 10"), 10 * x),
        (Words("its mean subtracted", "减去均值"), x - x.mean()),
        (Words("plus 100", "加上 100"), x + 100),
    ]
    shown = (
        (words, _row(r, "g"), *(_row(norm.forward(r, eps=0.0)[0], ".3f") for norm in NORMS)) for words, r in rows
    )
    return table(Words("Row|x|LayerNorm|RMSNorm", "变换|x|层归一化|均方根归一化"), shown, lang)


NORMS = layer_norm, rms_norm


def _row(numbers: np.ndarray, form: str) -> str:
    return ", ".join(f"{x + 0.0:{form}}".replace("-", "−") for x in numbers)
