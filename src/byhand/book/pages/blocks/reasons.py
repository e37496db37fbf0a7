"""Generated numbers behind softmax: why scores are scaled, and which maximum is subtracted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

from byhand.book.pages.blocks.markdown import Rows, block, decimals, display_lines, table_block
from byhand.book.words.language import Words
from byhand.equations.attention_scores import attention_scores
from byhand.equations.softmax import softmax

WIDTHS = (4, 16, 64, 256)


@table_block(
    "D|Standard deviation of q · k|p, unscaled|Slope p (1 − p)|p, scaled|Slope p (1 − p)",
    "D|q · k 的标准差|不缩放时的 p|斜率 p (1 − p)|缩放后的 p|斜率 p (1 − p)",
)
def score_scale() -> Rows:
    """The softmax of two keys whose dot products differ by one standard deviation, without the scale and with it."""
    for width in WIDTHS:
        spread = math.sqrt(width)  # of a sum of `width` independent products of variance 1
        found = [softmax.forward(np.array([score, 0.0]))[0][0] for score in (spread, spread / math.sqrt(width))]
        yield width, f"{spread:g}", *(decimals(x) for p in found for x in (p, p * (1 - p)))


@table_block(
    "D|√D|Spread of q·k|Largest weight|Slope|Spread of q·k / √D|Largest weight|Slope",
    "D|√D|q·k 的标准差|最大权重|斜率|q·k / √D 的标准差|最大权重|斜率",
)
def score_spread() -> Rows:
    """Dot products of random queries and keys by width: spread, largest of eight weights, slope of the softmax."""
    for width in WIDTHS:
        plain, scaled = (
            (f"{spread:.2f}", f"{largest:.3f}", f"{slope:.3f}") for spread, largest, slope in score_statistics(width)
        )
        yield width, f"{math.sqrt(width):g}", *plain, *scaled


@cache
def score_statistics(width: int) -> tuple[tuple[float, ...], ...]:
    """Return (spread, mean largest weight, mean p (1 - p)) of scores over eight keys, without and with the scale."""
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((1000, 1, 1, width)), rng.standard_normal((1000, 1, 8, width))
    scaled = attention_scores.forward(q, k)[0]
    found = []
    for scores in (scaled * math.sqrt(width), scaled):
        p = softmax.forward(scores)[0]
        found.append((float(scores.std()), float(p.max(axis=-1).mean()), float((p * (1 - p)).mean())))
    return tuple(found)


@table_block("|x|exp(x)|Sum|softmax", "|x|exp(x)|和|softmax")
def shifted() -> Rows:
    """The softmax of 1000 and 1001 as the formula says, and with the maximum subtracted."""
    x = np.array([1000.0, 1001.0])
    for words, given in (
        (Words("as written", "不减最大值"), x),
        (Words("maximum subtracted", "减去最大值"), x - 1001),
    ):
        powers, p = _shares(given)
        shown = [", ".join(f"{number:.6g}" for number in numbers) for numbers in (given, powers)]
        yield words, *shown, f"{powers.sum():.6g}", ", ".join(f"{number:.6f}" for number in p)


LARGE, MASKED = (1000.0, 999.0), 2000.0


@block
def masked_overflow(page: Path, lang: str) -> str:
    """A row of large scores whose largest is masked: which maximum has to be subtracted."""
    lines = [rf"S_{{t,:}} = {_vector((*LARGE, MASKED))}, \quad M_{{t,:}} = (0,\; 0,\; -\infty)"]
    for m in (MASKED, max(LARGE)):
        exponentials, p = _shares(np.array(LARGE) - m)
        powers = r",\; ".join(f"e^{{{s - m:g}}}" for s in LARGE)
        lines.append(rf"m = {m:g}: \quad ({powers}) = {_vector(exponentials)}, \quad p = {_vector(p)}")
    return display_lines(lines)


def _shares(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return exponentials, and these divided by their sum, in float64 with its overflow."""
    with np.errstate(all="ignore"):
        powers = np.exp(x)
        return powers, powers / powers.sum()


def _vector(values: Iterable[float]) -> str:
    special = {math.inf: r"\infty"}
    said = (r"\mathrm{NaN}" if math.isnan(x) else special.get(x) or f"{round(x, 6):g}" for x in map(float, values))
    return f"({', '.join(said)})"
