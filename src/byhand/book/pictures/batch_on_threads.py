"""A step of the loops runtime on several threads: each takes rows of the batch, then a range of the parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from byhand.book.pictures.canvas import COLOURS
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Arrow, Box
from byhand.book.pictures.scene.groups import Across, Column, heading
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


@scene(f"A batch of {BATCH} rows on {THREADS} threads", f"{BATCH} 行的批次分给 {THREADS} 个线程")
def batch_on_threads() -> Column:
    """Rows, their gradients in a region for each thread, their sums by ranges, the update."""
    rows, ranges = shares()
    owner = [thread for thread, count in enumerate(rows) for _ in range(count)]
    firsts = [owner.index(thread) for thread in range(THREADS)]
    spans = [f"{first}–{first + count - 1}" for first, count in zip(firsts, rows, strict=True)]
    threads = [
        Box([Words(f"thread {i}", f"线程 {i}"), Words(f"rows {spans[i]}", f"第 {spans[i]} 行"),
             Words("forward", "前向"), Words("backward", "反向")], line=COLOURS[i])
        for i in range(THREADS)
    ]  # fmt: skip
    regions = [
        _parts([i] * THREADS, [Words(f"∂ rows {spans[i]}", f"∂ 第 {spans[i]} 行")] * THREADS, ranges, says="")
        for i in range(THREADS)
    ]
    own = _parts(range(THREADS), [f"{n:,}" for n in ranges], ranges, join=" | ")
    barrier = Box(Words("barrier: all threads wait", "屏障：所有线程在此等待"), dashed=True, high=18, says="")
    return Column([
        heading(Words(f"1  The {BATCH} rows of a batch", f"1  批次的 {BATCH} 行")),
        _parts(owner, [str(row) for row in range(BATCH)], [1] * BATCH, says=""),
        Across([Arrow() for _ in rows], gap=2, shares=rows), Across(threads, gap=2, shares=rows),
        heading(Words("2  Gradients: a region per thread", "2  梯度：每个线程一个区域"),
                Words("nothing shared", "互不共享")), *regions, barrier,
        heading(Words("3  Each sums its range over all regions", "3  每个线程把各区域的一段相加")), own, barrier,
        heading(Words("4  Clip by the global norm, then AdamW", "4  按总范数裁剪，AdamW 更新"),
                Words("parameters", "参数")), own,
    ], gap=4)  # fmt: skip


def _parts(threads: Iterable[int], words: Sequence[Said], shares: Sequence[float], **others: Any) -> Across:
    """Return the parts of something, each in the colour of its thread."""
    boxes = [Box(said, COLOURS[thread]) for thread, said in zip(threads, words, strict=True)]
    return Across(boxes, gap=2, shares=shares, **others)
