"""Flat memory in colour: by row, by batch element, by head, with the offset of one element worked out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from operator import itemgetter

import numpy as np

from byhand.book.lessons.examples.attention_index import PLACE, SHAPE
from byhand.book.lessons.examples.memory_layout import STREAM, offset
from byhand.book.numbers.arithmetic import expression
from byhand.book.pictures.canvas import COLOURS, GREY, SIZE, SMALL, WHITE, Canvas, Point
from byhand.book.pictures.picture import picture
from byhand.book.words.language import Said, Words
from byhand.engine.terms import element_name

Index = tuple[int, ...]
STRIP, HIGH = 16.25, 22.0  # a cell of a strip of 24
BIG = 40.0, 24.0  # a cell of a table
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


def strip(canvas: Canvas, shape: Sequence[int], colour: Callable[[Index], int], marked: int) -> None:
    """Draw an array's memory, 24 cells a line, each with its offset; the marked one is hollow."""
    for place, index in enumerate(np.ndindex(*shape)):
        line, column = divmod(place, 24)
        x, y = 5 + column * STRIP, canvas.y + line * (HIGH + 4)
        _cell(canvas, (x, y), STRIP - 1, place, COLOURS[colour(index)], hollow=place == marked, small=True)
    canvas.y += -(-prod(shape) // 24) * (HIGH + 4)


def table(canvas: Canvas, colour: Callable[[Index], int], marked: int) -> None:
    """Draw [B,T,C] as a table for each batch element, each cell with its offset."""
    width = STREAM[2] * BIG[0]
    canvas.y += 36
    for place, (b, t, c) in enumerate(np.ndindex(*STREAM)):
        x, y = 24 + b * (width + 36) + c * BIG[0], canvas.y + 2 + t * BIG[1]
        _cell(canvas, (x, y), BIG[0] - 2, place, COLOURS[colour((b, t, c))], hollow=place == marked)
        if (t, c) == (0, 0):
            canvas.text(x, canvas.y - 20, f"b = {b}", bold=True)
        if c == 0 and b == 0:
            canvas.text(x - 6, y + 16, f"t{t}", at="end", size=SMALL)
        if t == 0:
            canvas.text(x + BIG[0] / 2 - 1, canvas.y - 6, f"c{c}", at="middle", size=SMALL)
    canvas.y += STREAM[1] * BIG[1] + 8


def _cell(
    canvas: Canvas, corner: Point, width: float, number: int, fill: str, *, hollow: bool, small: bool = False
) -> None:
    """Draw a cell with its offset; a hollow one has two edges."""
    (x, y), (letters, base, round_by) = corner, (10, 15, 1) if small else (SIZE, 16, 2)
    canvas.box(x, y, width, HIGH, fill="none" if hollow else fill, line=fill, round_by=round_by)
    if hollow:
        canvas.box(x + 1, y + 1, width - 2, HIGH - 2, line=fill, round_by=round_by)
    colour = GREY if hollow else WHITE
    canvas.text(x + width / 2, y + base, str(number), at="middle", size=letters, colour=colour, bold=hollow)


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


def in_words(start: Words, lines: Callable[[], Sequence[Said]], lang: str) -> str:
    """Say the meaning of the colours, and the arithmetic."""
    said = " · ".join(words.said(lang) if isinstance(words, Words) else words for words in lines())
    return f"{start.said(lang)} {said}"


@picture(
    Words("Row-major memory by rows", "行主序内存：按行着色"),
    partial(in_words, Words("24 numbers of [B,T,C]; the four of a row are adjacent.",
                            "[B,T,C] 的 24 个数，每行四个相邻。"), rows_worked),
)  # fmt: skip
def memory_rows(canvas: Canvas) -> None:
    """Each row of C numbers is contiguous."""
    _stream(canvas, Words("coloured by row t", "按行 t 着色"), by_row, IN_ROWS, rows_worked())


@picture(
    Words("Row-major memory by batch elements", "行主序内存：按批次元素着色"),
    partial(in_words, Words("24 numbers of [B,T,C]; the twelve of a batch element are adjacent.",
                            "[B,T,C] 的 24 个数，每个批次元素十二个相邻。"), batch_worked),
)  # fmt: skip
def memory_batch(canvas: Canvas) -> None:
    """Each batch element of T C numbers is contiguous."""
    _stream(canvas, Words("coloured by batch element b", "按批次元素 b 着色"), by_batch, IN_BATCH, batch_worked())


def _stream(
    canvas: Canvas, colours: Words, colour: Callable[[Index], int], marked: Index, worked: Sequence[Said]
) -> None:
    """Draw x [B,T,C] as tables and as memory, with the arithmetic of the marked element's offset below."""
    canvas.label(SIZES, colours, 5, 395)
    table(canvas, colour, flat(marked, STREAM))
    canvas.text(5, canvas.y + 12, ONE_AFTER_ANOTHER, size=SMALL)
    canvas.y += 18
    strip(canvas, STREAM, colour, flat(marked, STREAM))
    canvas.text_lines(5, canvas.y + 14, worked, 20)
    canvas.y += 20 * len(worked) + 4


@picture(
    Words("Memory by heads", "内存：按注意力头着色"),
    partial(in_words, Words("The same element in three layouts, two heads.",
                            "同一个元素在三种布局中的位置，两个头。"), heads_worked),
)  # fmt: skip
def memory_heads(canvas: Canvas) -> None:
    """The columns of a head lie apart in [B,T,C] and in packed [B,T,3C], together in [B,H,T,D]."""
    for head in range(HEADS):
        canvas.swatch(5 + head * 70, 14, Words(f"head {head}", f"头 {head}"), COLOURS[head])
    b, h, t, d = QUERY
    element = f"b = {b}, h = {h}, t = {t}, d = {d}"
    canvas.text(395, 14, Words(f"hollow: {element}", f"空心：{element}"), at="end", size=SMALL)
    canvas.y = 26
    packed, split, columns = heads_worked()
    _layout(canvas, f"qkv [B,T,3C] = {list(PACKED)}", PACKED, by_head, merged(), packed, packed=True)
    _layout(canvas, f"q [B,H,T,D] = {list(SHAPE)}", SHAPE, of_head, QUERY, split)
    _layout(canvas, f"y [B,T,C] = {list(STREAM)}", STREAM, by_head, merged(), columns)


def _layout(
    canvas: Canvas, name: str, shape: Sequence[int], colour: Callable[[Index], int], marked: Index, said: str,
    packed: bool = False,
) -> None:  # fmt: skip
    canvas.text(5, canvas.y + 14, name, bold=True)
    canvas.y += 20
    if packed:
        for part in range(2 * 3):
            x = 5 + (part + 0.5) * STREAM[2] * STRIP
            canvas.text(x, canvas.y + 12, "qkv"[part % 3], at="middle", size=SMALL)
        canvas.y += 18
    strip(canvas, shape, colour, flat(marked, shape))
    canvas.text(5, canvas.y + 12, said)
    canvas.y += 26
