"""Places of [b,t,c] and [b,h,t,s] in memory: strides, offsets, neighbours, and the index of an offset."""

from __future__ import annotations

import math
from collections.abc import Sequence

from byhand.book.finding.equations import of_equations
from byhand.book.lessons.lesson import Content, Maker, Number, Step, listed
from byhand.book.numbers import arithmetic
from byhand.book.practice.edits import Mistake
from byhand.book.words.language import Words
from byhand.engine.terms import Term, element_name, number, product, total

STREAM, SCORES = (2, 3, 4), (2, 2, 3, 3)
PLACES_IN_STREAM = ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 2, 3))
PLACES_IN_SCORES = ((0, 0, 0, 1), (0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 2, 1))


@listed(80, "Where an element lies in row-major memory", "元素在行主序内存中的位置")
def lesson(array: Maker) -> Content:
    """Strides first, then offsets of elements, then an index from an offset."""
    where = str(of_equations()["reshape"].forward)
    steps: list[Step] = []
    for name, shape, axes, places in (
        ("x", STREAM, "B,T,C", PLACES_IN_STREAM),
        ("scores", SCORES, "B,H,T,S", PLACES_IN_SCORES),
    ):
        steps.append(_strides(name, shape, axes, where))
        numbers = tuple(offset_number(name, index, shape) for index in places)
        steps.append(
            Step(
                Words(f"Offsets in {name} [{axes}]", f"{name} [{axes}] 中的偏移量"),
                Words("offset = ((i₀ n₁ + i₁) n₂ + i₂) …", "偏移量 = ((i₀ n₁ + i₁) n₂ + i₂) …"),
                where,
                numbers,
                goal=Words(
                    "Find elements in the flat row of numbers.",
                    "在一整行数中找到各个元素。",
                ),
                why=Words(
                    "Each step multiplies by the next length and adds the next index, so no product of lengths has to be kept.",
                    "每一步乘以下一个轴的长度，再加上下一个下标，不必另存各轴的步长。",
                ),
            )
        )
    steps.append(_way_back(where))
    intro = Words(
        "An array is one row of numbers; the last axis is contiguous. "
        "Arithmetic on the indices is enough to find an element.",
        "数组在内存中是一整行数，最后一个轴是连续的。找到一个元素只需要对下标做算术。",
    )
    return intro, steps, ()


def _strides(name: str, shape: tuple[int, ...], axes: str, where: str) -> Step:
    letters = axes.split(",")
    numbers = tuple(
        Number(
            Words(f"stride of {letters[k]}", f"{letters[k]} 轴的步长"),
            " × ".join(map(str, shape[k + 1 :])) or "1",
            math.prod(shape[k + 1 :]),
            mistakes=(
                Mistake(
                    "took the axes before instead of after", "乘了前面的轴，而不是后面的轴", math.prod(shape[:k])
                ),
            ),
        )
        for k in range(len(shape))
    )
    return Step(
        Words(f"Strides of {name} [{axes}] = {list(shape)}", f"{name} [{axes}] = {list(shape)} 的步长"),
        Words("stride of an axis = product of the lengths of the axes after it", "一个轴的步长 = 它后面各轴长度之积"),
        where,
        numbers,
        goal=Words(
            "Find the distance between neighbours along each axis.",
            "求每个轴上相邻元素相距多远。",
        ),
        why=Words(
            "The axes after an axis run through all their positions before its own index grows by one.",
            "一个轴的下标加一，要跨过它后面各轴的全部位置。",
        ),
    )


def _way_back(where: str) -> Step:
    offset, (_, t, c) = 17, STREAM
    row, column = divmod(offset, c)
    b, position = divmod(row, t)
    numbers = (
        Number(
            "c",
            f"{offset} mod {c}",
            column,
            mistakes=(Mistake("took the quotient, not the remainder", "取成了商，而不是余数", row),),
        ),
        Number("t", f"⌊{offset} / {c}⌋ mod {t} = {row} mod {t}", position),
        Number("b", f"⌊{row} / {t}⌋", b),
    )
    return Step(
        Words(f"Which element of x has offset {offset}?", f"x 中偏移量为 {offset} 的是哪个元素？"),
        Words(
            "divide by the last length: the remainder is the last index; go on with the quotient",
            "除以最后一个轴的长度：余数是最后一个下标；再用商继续",
        ),
        where,
        numbers,
        goal=Words(
            "Go back from an offset to the indices.",
            "由偏移量求回各个下标。",
        ),
        why=Words(
            "The offset was built by multiplying and adding; dividing with remainder undoes it, the last axis first.",
            "偏移量由乘与加得到，带余除法从最后一个轴开始把它还原。",
        ),
    )


def offset(index: Sequence[int], shape: Sequence[int]) -> Term:
    """Return ((i J + j) K + k) as a term."""
    term = number(index[0])
    for i, n in zip(index[1:], shape[1:], strict=True):
        term = total((product((term, number(n))), number(i)))
    return term


def offset_number(name: str, index: Sequence[int], shape: Sequence[int]) -> Number:
    """Return the flat offset of an element as a number to compute."""
    term = offset(index, shape)
    by_columns = sum(i * math.prod(shape[:k]) for k, i in enumerate(index))
    mistakes = (
        Mistake("laid the array out by columns (column-major)", "按列主序排列了", by_columns),
        Mistake("counted from 1", "下标从 1 数起了", offset([i + 1 for i in index], shape).value),
        Mistake("added the indices", "把下标直接相加了", sum(index)),
    )
    place = element_name(name, tuple(index))
    label = Words(f"offset of {place}", f"{place} 的偏移量")
    return Number(label, arithmetic.expression(term), term.value, mistakes=mistakes)
