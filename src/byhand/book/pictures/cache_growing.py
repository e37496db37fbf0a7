"""The growing KV cache: three tokens decoded one by one, with the rows that are kept and those computed."""

from __future__ import annotations

from typing import NamedTuple

from byhand.book.pictures.canvas import BLUE, RUST
from byhand.book.pictures.passes import BLOCK, TOKENS, cached_passes, paper_model, rows_of
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.cells import Cells
from byhand.book.pictures.scene.elements import Box, Key, Sign, Space
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, heading
from byhand.book.words.language import Words

CELL, HEAD = (44.0, 18.0), 0
SHOWN = 2  # columns; the others of the lesson's keys and values are 0
WIDTHS = (88, 88, 132, 72)  # pixels: keys, values, scores, rows without a cache


class Decoded(NamedTuple):
    """One token decoded: the keys and values of head 0 so far, and the row of scores that was computed."""

    keys: list[list[str]]
    values: list[list[str]]
    scores: list[str]


def decoded() -> list[Decoded]:
    """Return the keys, values and scores of head 0 for each of the lesson's tokens."""
    found = []
    for trace in cached_passes():
        (scores, _), (mixed, _) = (trace.made[f"{BLOCK}attn.{name}"] for name in ("scores", "mixed"))
        arrays = scores.inputs[1].data[..., :SHOWN], mixed.inputs[1].data[..., :SHOWN], scores.results[0].data
        keys, values, (row,) = (rows_of(array[0, HEAD], 3) for array in arrays)
        found.append(Decoded(keys, values, row))
    return found


def rows_without(count: int) -> int:
    """Return how many rows are computed for so many tokens without a cache: the whole context for each."""
    return sum(range(1, count + 1))


@scene("A KV cache growing by one row per token", "键值缓存：每个词元增加一行")
def cache_growing() -> Column:
    """Rows kept in one colour, rows computed in the other; at the right the rows of a pass without a cache."""
    width, count = paper_model().config.head_width, len(TOKENS)
    key = Key([Sign(Words("kept", "保留"), BLUE), Sign(Words("computed now", "本步计算"), RUST)])
    shown = Words(f"{SHOWN} of {width} columns, rest 0", f"{width} 列中的前 {SHOWN} 列，其余为 0")
    names = "K", "V", Words("scores", "分数"), Words("no cache", "没有缓存")
    total = Words(
        f"Rows computed: {count} with the cache, {rows_without(count)} without.",
        f"计算的行数：有缓存 {count} 行，没有缓存 {rows_without(count)} 行。",
    )
    head = Across(list(map(heading, names)), gap=4, widths=WIDTHS)
    return Column([Across([key, Caption(shown, at="end")]), head, *map(_step, TOKENS, decoded()), heading(total)])


def _step(token: int, step: Decoded) -> Column:
    """Return the cache after a token, and the rows computed for it."""
    new, lines = len(step.keys) - 1, []
    for row in range(len(TOKENS)):
        fill, empty = RUST if row == new else BLUE, Box("", dashed=True, high=18, wide=2 * CELL[0])
        cells: list[Figure] = [empty, empty, Space(), Space()]
        if row <= new:
            cells[:2] = [Cells([found[row]], fill, cell=CELL) for found in (step.keys, step.values)]
            cells[3] = Box(Words(f"row {row}", f"第 {row} 行"), RUST, high=18, wide=72)
        if row == new:
            cells[2] = Cells([step.scores], RUST, cell=CELL, at="start")
        lines.append(Across(cells, gap=4, widths=WIDTHS))
    name = Words(f"token {token} at position {new}", f"位置 {new}，词元 {token}")
    k, v, scores = (f"({', '.join(found)})" for found in (step.keys[-1], step.values[-1], step.scores))
    says = Words(
        f"{name.en}: new row k = {k}, v = {v}, {new} kept, scores {scores}",
        f"{name.zh}：新的一行 k = {k}、v = {v}，保留 {new} 行，分数 {scores}",
    )
    return Column([Caption(name), *lines], gap=2, says=says)
