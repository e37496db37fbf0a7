"""Flat memory in colour: by row, by sequence, by head, with the offset of one element worked out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from byhand.book.lessons.examples.attention_index import PLACE, SHAPE
from byhand.book.lessons.examples.memory_layout import STREAM, offset
from byhand.book.numbers.arithmetic import expression
from byhand.book.pictures.canvas import COLOURS, SIZE, SMALL
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.cells import Cells, Frame
from byhand.book.pictures.scene.elements import Key, Sign
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, heading
from byhand.book.words.language import Said, Words
from byhand.engine.terms import element_name

Index = tuple[int, ...]
Colour = Callable[[Index], int]
HEADS = SHAPE[1]
PACKED = (*STREAM[:2], 3 * STREAM[2])
QUERY = (PLACE[0], PLACE[1], PLACE[2], SHAPE[3] - 1)  # of attention-index: the last number of its query


def flat(index: Index, shape: Sequence[int]) -> int:
    """Return the offset of an element."""
    return int(offset(index, shape).value)


def worked(name: str, index: Index, shape: Sequence[int]) -> str:
    """Write the arithmetic of an offset."""
    return f"{element_name(name, index)}: {expression(offset(index, shape))} = {flat(index, shape)}"


def merged() -> Index:
    """Return the place of the marked query in [B,T,C]: its head's columns begin at h D."""
    b, h, t, d = QUERY
    return b, t, h * SHAPE[3] + d


def _cells(
    shape: Sequence[int], lines: Sequence[Sequence[Index]], colour: Colour, marked: Index, **others: Any
) -> Cells:
    """Return elements of an array, each with its offset; the marked one is framed."""
    found = [(i, j) for i, line in enumerate(lines) for j, index in enumerate(line) if index == marked]
    return Cells(
        [[str(flat(index, shape)) for index in line] for line in lines],
        [[COLOURS[colour(index)] for index in line] for line in lines],
        frames=[Frame(place, place) for place in found], counted=True, **others,
    )  # fmt: skip


def _strip(shape: Sequence[int], colour: Colour, marked: Index) -> Cells:
    """Return an array's memory, 24 cells a line."""
    order = list(np.ndindex(*shape))
    return _cells(
        shape, [order[i : i + 24] for i in range(0, len(order), 24)], colour, marked, cell=(16.25, 24), size=10
    )


def by_head(index: Index) -> int:
    """Colour [b,t,...] by the head to which its column belongs, of queries, keys and values alike."""
    return index[2] % STREAM[2] // SHAPE[3]


def _stream(axis: str, marked: Index, *others: Said) -> Column:
    """Return x [B,T,C] as tables and as memory, with the arithmetic of the marked element's offset below."""
    (batch, rows, columns), colour = map(range, STREAM), itemgetter("bt".index(axis))
    tables = [
        _cells(STREAM, [[(b, t, c) for c in columns] for t in rows], colour, marked, rows=[f"t{t}" for t in rows],
               columns=[f"c{c}" for c in columns], cell=(40, 24), size=SMALL, title=f"b = {b}")
        for b in batch
    ]  # fmt: skip
    by = {
        "t": Words("coloured by row t", "按行 t 着色"),
        "b": Words("coloured by sequence b", "按序列 b 着色"),
    }
    words = Words("the same 24 numbers in memory", "同样的 24 个数在内存中")
    lines = [Caption(line, size=SIZE) for line in (worked("x", marked, STREAM), *others)]
    return Column([heading(f"x [B,T,C] = {list(STREAM)}", by[axis]), Across(tables), Caption(words),
                   _strip(STREAM, colour, marked), *lines])  # fmt: skip


@scene("Row-major memory: rows are contiguous", "行主序内存：每行的数连续")
def memory_rows() -> Column:
    """Each row of C numbers is contiguous; the distances of an element's neighbours."""
    _, length, width = STREAM
    return _stream("t", (1, 2, 3), Words(
        f"next c: + 1 · next t: + {width} · next b: + {length * width}",
        f"下一个 c：+ 1 · 下一个 t：+ {width} · 下一个 b：+ {length * width}",
    ))  # fmt: skip


@scene("Row-major memory: each sequence is contiguous", "行主序内存：每条序列的数连续")
def memory_batch() -> Column:
    """Each sequence of T C numbers is contiguous; the way back from an offset."""
    b, t, c = marked = (1, 1, 1)
    place, (_, length, width) = flat(marked, STREAM), STREAM
    row = place // width
    back = f"{place} = {row} × {width} + {c}, {row} = {b} × {length} + {t} → [{b},{t},{c}]"
    return _stream("b", marked, Words("and back, by division with remainder:", "反过来，用带余数的除法："), back)


@scene("The same index in three arrays, two heads", "同一组下标在三个数组中的位置，两个头")
def memory_heads() -> Column:
    """The columns of a head lie apart in [B,T,C] and in packed [B,T,3C], together in [B,H,T,D]."""
    key = Key([Sign(Words(f"head {head}", f"头 {head}"), COLOURS[head]) for head in range(HEADS)])
    element = "b = {}, h = {}, t = {}, d = {}".format(*QUERY)
    marked = Caption(Words(f"framed: {element}", f"带框：{element}"), at="end")
    parts = Across([Caption(part, at="middle") for part in "qkvqkv"], gap=0, shares=[1] * 6)
    of_head = itemgetter(1)
    lines: list[Figure] = [Across([key, marked])]
    for name, axes, shape, colour, index in (
        ("qkv", "B,T,3C", PACKED, by_head, merged()), ("q", "B,H,T,D", SHAPE, of_head, QUERY),
        ("y", "B,T,C", STREAM, by_head, merged()),
    ):  # fmt: skip
        lines += [heading(f"{name} [{axes}] = {list(shape)}"), *([parts] if name == "qkv" else ())]
        lines += [_strip(shape, colour, index), Caption(worked(name, index, shape), size=SIZE)]
    return Column(lines)
