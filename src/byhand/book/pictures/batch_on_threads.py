"""A step of the loops runtime on several threads: each takes rows of the batch, then a range of the parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from byhand.book.pictures.canvas import COLOURS, SMALL, Canvas
from byhand.book.pictures.picture import picture
from byhand.book.words.language import SEMICOLON, Said, Words
from byhand.config import ModelConfig
from byhand.model import TinyGPT

BATCH, THREADS = 8, 3
LEFT, WHOLE, HIGH = 4.0, 392.0, 22.0


@lru_cache(maxsize=1)
def shares() -> tuple[list[int], list[int]]:
    """Return how many rows each thread takes, and in how long a range it sums and updates the default model."""
    # Imported late: they need Numba's compiler, which nothing else in the book needs.
    from byhand.runtimes.loops.lower.training import split
    from byhand.runtimes.loops.lower.update import update_calls
    from byhand.runtimes.loops.program.regions import Regions

    regions = Regions(TinyGPT(ModelConfig()).parameters(), THREADS)
    ranges = []
    for thread in range(THREADS):
        (call,) = (c for c in update_calls(regions, thread, THREADS) if c.kernel == "sum_shares")
        ranges.append(int(call.operands["n"]))  # pyright: ignore[reportArgumentType]  (a length, not a place)
    return split(BATCH, THREADS), ranges


def in_words(lang: str) -> str:
    """Say the rows and the range of each thread."""
    rows, ranges = shares()
    each = [
        Words(
            f"thread {i}: {rows[i]} rows, then {ranges[i]} parameters",
            f"线程 {i}：{rows[i]} 行，然后 {ranges[i]} 个参数",
        ).said(lang)
        for i in range(THREADS)
    ]
    said = Words(
        f"A batch of {BATCH} rows on {THREADS} threads. Each thread computes loss and gradients of its rows; then "
        "each sums all threads' gradients of its range of the parameters; then each clips and updates its range. ",
        f"{BATCH} 行的批次分给 {THREADS} 个线程。每个线程先计算自己那些行的损失与梯度，再对自己负责的一段参数把各线程"
        "的梯度相加，最后裁剪并更新这一段。",
    )
    return said.said(lang) + SEMICOLON.said(lang).join(each)


@picture(Words("A batch on three threads", "一个批次分给三个线程"), in_words)
def batch_on_threads(canvas: Canvas) -> None:
    """Rows, their gradients in a region for each thread, their sums by ranges, the update."""
    rows, ranges = shares()
    canvas.label(Words(f"1  The {BATCH} rows of a batch", f"1  批次的 {BATCH} 行"))
    width = WHOLE / BATCH
    for row, thread in enumerate(i for i, count in enumerate(rows) for _ in range(count)):
        canvas.box(LEFT + row * width + 1, canvas.y, width - 2, HIGH, str(row), fill=COLOURS[thread], size=SMALL)
    canvas.y += HIGH
    first, middles, read = 0, [], []
    for thread, count in enumerate(rows):
        middles.append(LEFT + (first + count / 2) * WHOLE / BATCH)
        read.append(Words(f"∂ rows {first}–{first + count - 1}", f"∂ 第 {first}–{first + count - 1} 行"))
        first += count
        canvas.arrow([(middles[-1], canvas.y + 2), (middles[-1], canvas.y + 16)])
        width = count * WHOLE / BATCH - 2
        words = Words(f"thread {thread}", f"线程 {thread}")
        canvas.box(middles[-1] - width / 2, canvas.y + 18, width, 56, line=COLOURS[thread])
        canvas.text(middles[-1], canvas.y + 34, words, at="middle", bold=True)
        for line, does in enumerate((Words("forward", "前向"), Words("backward", "反向"))):
            canvas.text(middles[-1], canvas.y + 50 + 16 * line, does, at="middle", size=SMALL)
    canvas.y += 80
    remark = Words("nothing shared", "互不共享")
    canvas.label(Words("2  Gradients: a region per thread", "2  梯度：每个线程一个区域"), remark)
    for thread in range(THREADS):
        _ranges(canvas, ranges, [thread] * THREADS, [read[thread]] * THREADS)
        canvas.y += HIGH + 2
    _meeting(canvas)
    canvas.label(Words("3  Each sums its range over all regions", "3  每个线程把各区域的一段相加"))
    _ranges(canvas, ranges, range(THREADS), [f"{n:,}" for n in ranges])
    canvas.y += HIGH + 2
    _meeting(canvas)
    remark = Words("parameters", "参数")
    canvas.label(Words("4  Clip by the global norm, then AdamW", "4  按总范数裁剪，AdamW 更新"), remark)
    _ranges(canvas, ranges, range(THREADS), [f"{n:,}" for n in ranges])
    canvas.y += HIGH + 8


def _ranges(canvas: Canvas, ranges: list[int], threads: Iterable[int], words: Sequence[Said]) -> None:
    """Draw the parameters from the first to the last, cut into ranges, each in the colour of a thread."""
    x = LEFT
    for i, thread in enumerate(threads):
        width = ranges[i] * WHOLE / sum(ranges)
        canvas.box(x + 1, canvas.y, width - 2, HIGH, words[i], fill=COLOURS[thread], size=SMALL)
        x += width


def _meeting(canvas: Canvas) -> None:
    """Draw the line at which every thread waits for the others, and arrows across it."""
    y = canvas.y + 10
    words = Words("barrier: all threads wait", "屏障：所有线程在此等待")
    half = 94
    for ends in ((LEFT, LEFT + WHOLE / 2 - half), (LEFT + WHOLE / 2 + half, LEFT + WHOLE)):
        canvas.line([(ends[0], y), (ends[1], y)], dashed=True)
    canvas.text(LEFT + WHOLE / 2, y + 4, words, at="middle", size=SMALL)
    canvas.y += 22
