"""The growing KV cache: three tokens decoded one by one, with the rows that are kept and those computed."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.book.pictures.canvas import BLUE, RUST, SMALL, TINY, Canvas
from byhand.book.pictures.passes import BLOCK, TOKENS, cached_passes, paper_model, rows_of
from byhand.book.pictures.picture import picture
from byhand.book.words.language import SEMICOLON, Words

CELL, HEAD = (44.0, 20.0), 0
SHOWN = 2  # columns; the others of the lesson's keys and values are 0
KEYS, VALUES, SCORES, WITHOUT = 4.0, 98.0, 192.0, 334.0  # left edges


@dataclass(frozen=True)
class Decoded:
    """One token decoded: the keys and values of head 0 so far, and the row of scores that was computed."""

    keys: list[list[str]]
    values: list[list[str]]
    scores: list[str]


def decoded() -> list[Decoded]:
    """Return the keys, values and scores of head 0 for each of the lesson's tokens."""
    found = []
    for trace in cached_passes():
        (scores, _), (mixed, _) = (trace.made[f"{BLOCK}attn.{name}"] for name in ("scores", "mixed"))
        arrays = scores.inputs[1].data, mixed.inputs[1].data, scores.results[0].data
        keys, values, (row,) = (rows_of(array[0, HEAD], 3) for array in arrays)
        keys, values = ([found[:SHOWN] for found in rows] for rows in (keys, values))
        found.append(Decoded(keys, values, row))
    return found


def rows_without(count: int) -> int:
    """Return how many rows are computed for so many tokens without a cache: the whole context for each."""
    return sum(range(1, count + 1))


def in_words(lang: str) -> str:
    """Say each step's rows."""
    said = []
    for step in decoded():
        new = len(step.keys)
        row = f"k = ({', '.join(step.keys[-1])}), v = ({', '.join(step.values[-1])})"
        scores = f"({', '.join(step.scores)})"
        words = Words(
            f"step {new}: new row {row}, {new - 1} kept, scores {scores}",
            f"第 {new} 个词元：新的一行 {row}，保留 {new - 1} 行，分数 {scores}",
        )
        said.append(words.said(lang))
    return SEMICOLON.said(lang).join(said) + Words(". ", "。").said(lang) + _total().said(lang)


def _total() -> Words:
    count = len(TOKENS)
    return Words(
        f"Rows computed: {count} with the cache, {rows_without(count)} without.",
        f"计算的行数：有缓存 {count} 行，没有缓存 {rows_without(count)} 行。",
    )


@picture(Words("A KV cache growing by one row per token", "键值缓存：每个词元增加一行"), in_words)
def cache_growing(canvas: Canvas) -> None:
    """Rows kept in one colour, rows computed in the other; at the right the rows of a pass without a cache."""
    canvas.swatch(KEYS, 14, Words("kept", "保留"), BLUE)
    canvas.swatch(VALUES, 14, Words("computed now", "本步计算"), RUST)
    width = paper_model().config.head_width
    words = Words(f"{SHOWN} of {width} columns; rest 0", f"{width} 列中的前 {SHOWN} 列，其余为 0")
    canvas.text(396, 14, words, at="end", size=SMALL)
    canvas.y = 24
    for x, words in ((KEYS, "K"), (VALUES, "V"), (SCORES, Words("scores", "分数"))):
        canvas.text(x, canvas.y + 12, words, bold=True)
    canvas.text(396, canvas.y + 12, Words("no cache", "没有缓存"), at="end", bold=True)
    canvas.y += 20
    for token, step in zip(TOKENS, decoded(), strict=True):
        _step(canvas, token, step)
    canvas.text(4, canvas.y + 12, _total(), bold=True)
    canvas.y += 18


def _step(canvas: Canvas, token: int, step: Decoded) -> None:
    """Draw the cache after a token, and the rows computed for it."""
    new = len(step.keys) - 1
    canvas.text(4, canvas.y + 12, Words(f"token {token} at position {new}", f"位置 {new}，词元 {token}"), size=SMALL)
    canvas.y += 18
    for row in range(len(TOKENS)):
        y, fill = canvas.y + row * CELL[1], RUST if row == new else BLUE
        for x, rows in ((KEYS, step.keys), (VALUES, step.values)):
            if row <= new:
                canvas.matrix(x, y, [rows[row]], fill, cell=(CELL[0], CELL[1] - 2), size=TINY)
            else:
                canvas.box(x, y, 2 * CELL[0], CELL[1] - 2, dashed=True)
        if row <= new:
            canvas.box(WITHOUT, y, 62, CELL[1] - 2, Words(f"row {row}", f"第 {row} 行"), fill=RUST, size=SMALL)
    canvas.matrix(SCORES, canvas.y + new * CELL[1], [step.scores], RUST, cell=(CELL[0], CELL[1] - 2), size=TINY)
    canvas.y += len(TOKENS) * CELL[1] + 8
