"""Generated tables that compare equations: the same numbers in, and the result of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding import index
from byhand.book.numbers.closed_form import array
from byhand.book.pages.blocks.markdown import Rows, block, decimals, table, table_block
from byhand.book.words.language import Words
from byhand.engine import registry
from byhand.equations.layer_norm import layer_norm
from byhand.equations.rms_norm import rms_norm


@block
def values_and_slopes(page: Path, lang: str, stems: str, *places: str) -> str:
    """Functions of one number, joined by + signs, and their slopes at some places; settings as worked by hand."""
    xs = np.array([float(place) for place in places])
    columns, head = [[f"{x:g}" for x in xs]], Words("x", "x")
    for stem in stems.split("+"):
        equation, static = registry[stem], ENTRIES[stem].static
        y, saved = equation.forward(xs, **static)
        slopes = equation.vjp(saved, np.ones_like(xs), **static)[0]
        columns += [list(map(decimals, y)), list(map(decimals, slopes))]
        title = index.findings()[stem].title
        head = Words(f"{head.en}|{title.en}|Slope", f"{head.zh}|{title.zh}|斜率")
    return table(head, zip(*columns, strict=True), lang)


@table_block("Row|x|LayerNorm|RMSNorm", "变换|x|层归一化|均方根归一化")
def norms_beside() -> Rows:
    """LayerNorm and RMSNorm of the row that LayerNorm's example works by hand, and of the row moved and stretched."""
    (x,) = array(ENTRIES["layer_norm"].inputs["x"])
    for words, row in (
        (Words("as it is", "原样"), x),
        (Words("times 10", "乘以 10"), 10 * x),
        (Words("its mean subtracted", "减去均值"), x - x.mean()),
        (Words("plus 100", "加上 100"), x + 100),
    ):
        normalised = (norm.forward(row, eps=0.0)[0] for norm in (layer_norm, rms_norm))
        yield words, _row(row, "g"), *(_row(y, ".3f") for y in normalised)


def _row(numbers: np.ndarray, form: str) -> str:
    return ", ".join(f"{x + 0.0:{form}}".replace("-", "−") for x in numbers)
