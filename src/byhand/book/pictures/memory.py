"""Flat memory in colour: by row, by batch element, by head, with the offset of one element worked out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

import numpy as np

from byhand.book.lessons.examples.attention_index import PLACE, SHAPE
from byhand.book.lessons.examples.memory_layout import STREAM, offset
from byhand.book.numbers.arithmetic import expression
from byhand.book.pictures.canvas import COLOURS, SIZE, SMALL
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Across, Caption, Cells, Column, Key, Sign, heading
from byhand.book.words.language import Said, Words
from byhand.engine.terms import element_name

Index = tuple[int, ...]
IN_ROWS, IN_BATCH = (1, 2, 3), (1, 1, 1)  # the elements that are marked
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


def _strip(shape: Sequence[int], colour: Callable[[Index], int], marked: Index) -> Cells:
    """Return an array's memory, 24 cells a line, each with its offset; the marked one is hollow."""
    cells = list(np.ndindex(*shape))
    fill = [COLOURS[colour(index)] for index in cells]
    place = divmod(flat(marked, shape), 24)
    lines = range(0, len(cells), 24)
    return Cells(
        [[str(n) for n in range(i, i + 24)] for i in lines], [fill[i : i + 24] for i in lines], hollow=[place],
        cell=(16.25, 24), size=10, counted=True,
    )  # fmt: skip


def _table(b: int, colour: Callable[[Index], int], marked: Index) -> Cells:
    """Return one batch element of [B,T,C], each cell with its offset."""
    _, rows, columns = STREAM
    return Cells(
        [[str(flat((b, t, c), STREAM)) for c in range(columns)] for t in range(rows)],
        [[COLOURS[colour((b, t, c))] for c in range(columns)] for t in range(rows)],
        rows=[f"t{t}" for t in range(rows)], columns=[f"c{c}" for c in range(columns)],
        hollow=[(marked[1], marked[2])] if marked[0] == b else (), cell=(40, 24), size=SMALL,
        title=f"b = {b}", counted=True,
    )  # fmt: skip


by_batch, by_row = itemgetter(0), itemgetter(1)  # colours of [b,t,c]
of_head = itemgetter(1)  # the colour of [b,h,t,d]


def by_head(index: Index) -> int:
    """Colour [b,t,...] by the head to which its column belongs, of queries, keys and values alike."""
    return index[2] % STREAM[2] // SHAPE[3]


ONE_AFTER_ANOTHER = Words("the same 24 numbers in memory", "同样的 24 个数在内存中")
SIZES = f"x [B,T,C] = {list(STREAM)}"


def rows_worked() -> tuple[Said, ...]:
    """Say the offset of the marked element, and the distances of its neighbours."""
    _, length, width = STREAM
    return (
        worked("x", IN_ROWS, STREAM),
        Words(f"next c: + 1 · next t: + {width} · next b: + {length * width}",
              f"下一个 c：+ 1 · 下一个 t：+ {width} · 下一个 b：+ {length * width}"),
    )  # fmt: skip


def batch_worked() -> tuple[Said, ...]:
    """Say the offset of the marked element, and the way back from it."""
    place, (b, t, c), (_, length, width) = flat(IN_BATCH, STREAM), IN_BATCH, STREAM
    row = place // width
    return (
        worked("x", IN_BATCH, STREAM),
        Words("and back, by division with remainder:", "反过来，用带余数的除法："),
        f"{place} = {row} × {width} + {c}, {row} = {b} × {length} + {t} → [{b},{t},{c}]",
    )


def heads_worked() -> tuple[str, str, str]:
    """Say the offset of one element in the three layouts."""
    return worked("qkv", merged(), PACKED), worked("q", QUERY, SHAPE), worked("y", merged(), STREAM)


@scene(
    Words("Row-major memory by rows", "行主序内存：按行着色"),
    Words("24 numbers of [B,T,C]; the four of a row are adjacent. ", "[B,T,C] 的 24 个数，每行四个相邻。"),
)
def memory_rows() -> Column:
    """Each row of C numbers is contiguous."""
    return _stream(Words("coloured by row t", "按行 t 着色"), by_row, IN_ROWS, rows_worked())


@scene(
    Words("Row-major memory by batch elements", "行主序内存：按批次元素着色"),
    Words("24 numbers of [B,T,C]; the twelve of a batch element are adjacent. ",
          "[B,T,C] 的 24 个数，每个批次元素十二个相邻。"),
)  # fmt: skip
def memory_batch() -> Column:
    """Each batch element of T C numbers is contiguous."""
    return _stream(Words("coloured by batch element b", "按批次元素 b 着色"), by_batch, IN_BATCH, batch_worked())


def _stream(colours: Words, colour: Callable[[Index], int], marked: Index, worked: Sequence[Said]) -> Column:
    """Return x [B,T,C] as tables and as memory, with the arithmetic of the marked element's offset below."""
    tables = [_table(b, colour, marked) for b in range(STREAM[0])]
    lines = [Caption(words, size=SIZE) for words in worked]
    return Column([heading(SIZES, colours), Across(tables), Caption(ONE_AFTER_ANOTHER, says=""),
                   _strip(STREAM, colour, marked), *lines])  # fmt: skip


@scene(
    Words("Memory by heads", "内存：按注意力头着色"),
    Words("The same element in three layouts, two heads. ", "同一个元素在三种布局中的位置，两个头。"),
)
def memory_heads() -> Column:
    """The columns of a head lie apart in [B,T,C] and in packed [B,T,3C], together in [B,H,T,D]."""
    key = Key([Sign(Words(f"head {head}", f"头 {head}"), COLOURS[head]) for head in range(HEADS)])
    element = "b = {}, h = {}, t = {}, d = {}".format(*QUERY)
    marked = Caption(Words(f"hollow: {element}", f"空心：{element}"), at="end")
    parts = Across([Caption(part, at="middle") for part in "qkvqkv"], gap=0, shares=[1] * 6)
    worked = heads_worked()
    layouts = (
        (f"qkv [B,T,3C] = {list(PACKED)}", _strip(PACKED, by_head, merged())),
        (f"q [B,H,T,D] = {list(SHAPE)}", _strip(SHAPE, of_head, QUERY)),
        (f"y [B,T,C] = {list(STREAM)}", _strip(STREAM, by_head, merged())),
    )
    lines = [
        [heading(name), *([parts] if cells.values[2:] else []), cells, Caption(said, size=SIZE)]
        for (name, cells), said in zip(layouts, worked, strict=True)
    ]
    return Column([Across([key, marked]), *(e for several in lines for e in several)])
