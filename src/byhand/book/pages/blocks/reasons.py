"""Generated numbers behind a reason: why scores are scaled, and which maximum is subtracted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from byhand.book.pages.blocks.markdown import block, decimals, display_lines, table
from byhand.book.words.language import Words
from byhand.equations.softmax import softmax


@block
def score_scale(page: Path, lang: str) -> str:
    """The softmax of two keys whose dot products differ by one standard deviation, without the scale and with it."""
    rows = []
    for width in (4, 16, 64, 256):
        spread = math.sqrt(width)  # of a sum of `width` independent products of variance 1
        shown = []
        for score in (spread, spread / math.sqrt(width)):
            p = softmax.forward(np.array([score, 0.0]))[0][0]
            shown += [decimals(p), decimals(p * (1 - p))]
        rows.append((width, f"{spread:g}", *shown))
    head = Words(
        "D|Standard deviation of q · k|p, unscaled|Slope p (1 − p)|p, scaled|Slope p (1 − p)",
        "D|q · k 的标准差|不缩放时的 p|斜率 p (1 − p)|缩放后的 p|斜率 p (1 − p)",
    )
    return table(head, rows, lang)


LARGE, MASKED = (1000.0, 999.0), 2000.0


@block
def masked_overflow(page: Path, lang: str) -> str:
    """A row of large scores whose largest is masked: which maximum has to be subtracted."""
    lines = [
        rf"S_{{t,:}} = {_vector((*LARGE, MASKED))}, \quad M_{{t,:}} = (0,\; 0,\; -\infty)",
        _shares(LARGE, MASKED),
        _shares(LARGE, max(LARGE)),
    ]
    return display_lines(lines)


def _shares(scores: tuple[float, ...], m: float) -> str:
    """Return the exponentials of scores minus m, and what they divided by their sum come to in float64."""
    with np.errstate(all="ignore"):
        exponentials = np.exp(np.array(scores) - m)
        p = exponentials / exponentials.sum()
    powers = r",\; ".join(f"e^{{{s - m:g}}}" for s in scores)
    return rf"m = {m:g}: \quad ({powers}) = {_vector(exponentials)}, \quad p = {_vector(p)}"


def _vector(values: Iterable[float]) -> str:
    special = {math.inf: r"\infty"}
    said = (r"\mathrm{NaN}" if math.isnan(x) else special.get(x) or f"{round(x, 6):g}" for x in map(float, values))
    return f"({', '.join(said)})"
