"""What a picture is made of: text, boxes, cells of numbers, plots, arrows, and the rows and columns that hold them.

An element declares what it shows, with its numbers, and never a place: `layout` gives it one, `drawing` draws it,
`words` says it, and `data` turns it into JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from byhand.book.pictures.canvas import BLUE, GREY, SIZE, SMALL, TINY
from byhand.book.words.language import Said, Words, say

HEAT = "heat"  # a cell's colour by its number: blue above 0, rust below
ONE = 1.0  # the number that has the deepest colour among weights and probabilities


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Something that is shown.

    title  stands above it in bold letters, and before its numbers in words
    name   by which links find it
    says   what the alternative text says of it, instead of all that it shows; "" for nothing
    at     its place in a wider slot: start, middle or end
    shows  the lesson's array whose numbers it has, by name: S, ∂S
    """

    title: Said = ""
    name: str = ""
    says: Said | None = None
    at: str = ""
    shows: str = ""


@dataclass(frozen=True)
class Caption(Figure):
    """Words, on as many lines as they need. The alternative text has those with a number."""

    words: Said
    bold: bool = False
    size: float = SMALL
    mono: bool = False


@dataclass(frozen=True)
class Space(Figure):
    """Room, as high and wide as given."""

    high: float = 0
    wide: float = 0


@dataclass(frozen=True)
class Box(Figure):
    """A rectangle around lines of text, the first of a sequence bold; as wide as its slot, if not given.

    Without words it is an area to scale; rounded by half of its height, a dot.
    """

    lines: Said | Sequence[Said]
    fill: str = ""
    line: str = GREY
    round_by: float = 4
    dashed: bool = False
    wide: float = 0
    high: float = 22
    size: float = SMALL


@dataclass(frozen=True)
class Frame:
    """A frame around cells, from one (row, column) to another; without a colour it stands out from every other."""

    first: tuple[int, int]
    last: tuple[int, int]
    colour: str = ""


@dataclass(frozen=True)
class Cells(Figure):
    """Rows of numbers or words in coloured cells: a matrix, a heat map, a stretch of memory.

    fill         one colour, `HEAT`, or a colour for each cell
    largest      the number that has the deepest colour; the largest one if not given
    rows, columns  names at the left and above; `corner` is the room for the names of rows, if given
    hidden       cells that a mask hides
    counted      whether the numbers only count the cells
    """

    values: Any
    fill: str | Sequence[Sequence[str]] = BLUE
    largest: float = 0
    rows: Sequence[Said] = ()
    columns: Sequence[Said] = ()
    hidden: Collection[tuple[int, int]] = ()
    frames: Sequence[Frame] = ()
    cell: tuple[float, float] = (0, 0)
    corner: float = 0
    size: float = TINY
    shown: bool = True
    counted: bool = False


@dataclass(frozen=True)
class Length(Figure):
    """A number as a length to the right of 0, or to its left, on a scale as wide as its slot."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Arrow(Figure):
    """An arrow to what follows in its column, or with `right` in its row."""

    above: Said = ""
    below: Said = ""
    right: bool = False
    long: float = 0


@dataclass(frozen=True)
class Sign:
    """An entry of a key: words behind a square, a line, a dashed line, a hidden cell, or a scale of `HEAT`."""

    words: Said
    colour: str = BLUE
    kind: str = "square"
    ends: tuple[float, float] = (0, 1)


@dataclass(frozen=True)
class Key(Figure):
    """The meaning of colours and lines."""

    signs: Sequence[Sign]


@dataclass(frozen=True)
class Link:
    """An arrow between two elements by their names, which leaves one side of the first and enters one of the other.

    straight  as one line; otherwise along the axes, bent where it must be
    back      whether the arrow points back, to the first
    away      pixels that it keeps from elements when it leaves and enters on the same side
    """

    start: str
    end: str
    leave: str = "bottom"
    enter: str = "top"
    words: Said = ""
    colour: str = GREY
    thick: float = 1
    dashed: bool = False
    head: bool = True
    straight: bool = False
    back: bool = False
    away: float = 12


@dataclass(frozen=True)
class Column(Figure):
    """Elements below each other, with links between any that have names; `line` is the colour of a frame."""

    children: Sequence[Figure]
    gap: float = 8
    links: Sequence[Link] = ()
    line: str = ""
    pad: float = 0
    join: Said = ""  # between the children's words


@dataclass(frozen=True)
class Across(Figure):
    """Elements side by side.

    widths  pixels of each slot, None for an equal part of the rest
    shares  instead of widths: the parts that slots have of the whole
    Without either, elements take the room that they need, and those without a width of their own the rest.
    """

    children: Sequence[Figure]
    gap: float = 8
    widths: Sequence[float | None] = ()
    shares: Sequence[float] = ()
    top: bool = False  # whether children start at the same height; else their middles do
    join: Said = ""


def heading(words: Said, remark: Said = "") -> Figure:
    """Return a bold line at the left, with a remark at the right."""
    line = Caption(words, bold=True, size=SIZE)
    return Across([line, Caption(remark, at="end")]) if remark else line


def dot(words: str = "", fill: str = BLUE, name: str = "", radius: float = 5) -> Box:
    """Return a disc, or without a fill a ring, with a sign in it such as + where two arrays are added."""
    size, wide = TINY if fill else SIZE, 2 * radius
    return Box([words] if words else (), fill, BLUE, radius, wide=wide, high=wide, size=size, name=name, says="")


def told(name: Said, *said: str) -> Words:
    """Return a name and what is said of it."""
    listed = ", ".join(said)
    return Words(f"{say(name, 'en')}: {listed}", f"{say(name, 'zh')}：{listed}")
