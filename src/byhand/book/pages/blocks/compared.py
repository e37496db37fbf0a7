"""Generated tables that compare equations: the same numbers in, and the result of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding import index
from byhand.book.pages.blocks.markdown import block, decimals, table
from byhand.book.words.language import Words
from byhand.engine import registry


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
