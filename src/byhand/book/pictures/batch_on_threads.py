"""A step of the loops runtime on several threads: each takes rows of the batch, then a range of the parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from byhand.book.pictures.canvas import COLOURS
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Across, Arrow, Box, Caption, Column, Divider, heading
from byhand.book.words.language import Said, Words
from byhand.config import ModelConfig
from byhand.model import TinyGPT

BATCH, THREADS = 8, 3


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


@scene(
    Words("A batch on three threads", "一个批次分给三个线程"),
    Words(
        f"A batch of {BATCH} rows on {THREADS} threads. Each thread computes loss and gradients of its rows; then "
        "each sums all threads' gradients of its range of the parameters; then each clips and updates its range. ",
        f"{BATCH} 行的批次分给 {THREADS} 个线程。每个线程先计算自己那些行的损失与梯度，再对自己负责的一段参数把各线程"
        "的梯度相加，最后裁剪并更新这一段。",
    ),
)
def batch_on_threads() -> Column:
    """Rows, their gradients in a region for each thread, their sums by ranges, the update."""
    rows, ranges = shares()
    owner = [thread for thread, count in enumerate(rows) for _ in range(count)]
    batch = Across(
        [Box(str(row), COLOURS[thread]) for row, thread in enumerate(owner)], gap=2, shares=[1] * BATCH, says=""
    )
    firsts = [owner.index(thread) for thread in range(THREADS)]
    spans = [f"{first}–{first + count - 1}" for first, count in zip(firsts, rows, strict=True)]
    threads = [
        Box([Words(f"thread {i}", f"线程 {i}"), Words("forward", "前向"), Words("backward", "反向")], line=COLOURS[i],
            says=Words(f"thread {i}: rows {spans[i]}, then {ranges[i]:,} parameters",
                       f"线程 {i}：第 {spans[i]} 行，然后 {ranges[i]:,} 个参数"))
        for i in range(THREADS)
    ]  # fmt: skip
    regions = [
        _ranges([thread] * THREADS, [Words(f"∂ rows {spans[thread]}", f"∂ 第 {spans[thread]} 行")] * THREADS)
        for thread in range(THREADS)
    ]
    numbers = _ranges(range(THREADS), [f"{n:,}" for n in ranges])
    words = Caption(Words("barrier: all threads wait", "屏障：所有线程在此等待"), at="middle")
    barrier = Across([Divider(), words, Divider()], widths=(None, 190, None))
    heads = (
        heading(Words(f"1  The {BATCH} rows of a batch", f"1  批次的 {BATCH} 行")),
        heading(Words("2  Gradients: a region per thread", "2  梯度：每个线程一个区域"),
                Words("nothing shared", "互不共享")),
        heading(Words("3  Each sums its range over all regions", "3  每个线程把各区域的一段相加")),
        heading(Words("4  Clip by the global norm, then AdamW", "4  按总范数裁剪，AdamW 更新"),
                Words("parameters", "参数")),
    )  # fmt: skip
    return Column([
        heads[0], batch, Across([Arrow() for _ in rows], gap=2, shares=rows), Across(threads, gap=2, shares=rows),
        heads[1], *regions, barrier, heads[2], numbers, barrier, heads[3], numbers,
    ], gap=4)  # fmt: skip


def _ranges(threads: Iterable[int], words: Sequence[Said]) -> Across:
    """Return the parameters from the first to the last, cut into ranges, each in the colour of a thread."""
    boxes = [Box(said, COLOURS[thread]) for thread, said in zip(threads, words, strict=True)]
    return Across(boxes, gap=2, shares=shares()[1], says="")
