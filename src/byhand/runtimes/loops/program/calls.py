"""Calls: kernel calls of a plan and their operands: buffers, places in them, kinds of copies, late numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from byhand.engine import Node
from byhand.formats.registry import FORMATS
from byhand.runtimes.loops.program.products import Copy


@dataclass(eq=False)
class Buffer:
    """An array of a plan: its name, shape, and place.

    kind    value (per share, placed by lifetime), input (per share, filled before each step), constant, parameter,
            gradient (per share, as large as the parameters), or own (per share although values are shared, as in
            decoding)
    offset  first element in its region; -1 before layout
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    dtype: str = "float32"
    offset: int = -1
    first: int = -1
    last: int = -1

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """The length of the last axis."""
        return self.shape[-1]

    @property
    def rows(self) -> int:
        """The product of all axes but the last."""
        return math.prod(self.shape[:-1])

    @property
    def words(self) -> int:
        """Its size in float32 elements of memory, by its format."""
        return FORMATS[self.dtype].words(self.size)

    def at(self, start: int) -> At:
        """Return the place at this offset."""
        return At(self, start)


@dataclass(frozen=True)
class At:
    """An offset into a buffer, in elements."""

    buffer: Buffer
    start: int

    @property
    def words(self) -> int:
        """The start in float32 elements of memory."""
        return FORMATS[self.buffer.dtype].word(self.start)

    def at(self, start: int) -> At:
        """Return the place `start` elements further."""
        return At(self.buffer, self.start + start)


# Numbers known only when a table is made for one share and one micro-batch:
ADDS = "adds"  # 0 if a step writes to a share's gradients first, 1 afterwards
LOSS_SLOT = "loss slot"  # where this share adds its loss
PART, PARTS = "part", "parts"  # this share's index, and the number of shares
OWN_SIGNAL = "own signal"  # where this share counts its barriers

Place = Buffer | At
Operand = Place | Copy | str | int


@dataclass(frozen=True)
class PythonStep:
    """A step in Python: an equation's own forward, or its vjp, on arrays of the plan.

    inputs   the application's: a buffer, or a constant's array, and the shape
    results  buffers of the results; backward, of their cotangents
    targets  backward: where each input's gradient goes, and whether it accumulates; None for no gradient
    keeps    the vjp follows, so the forward half's saved arrays are kept
    """

    inputs: tuple[tuple[Any, tuple[int, ...]], ...]
    results: tuple[Buffer, ...]
    targets: tuple[tuple[Buffer, Operand] | None, ...] | None = None
    keeps: bool = False


@dataclass(eq=False)
class Call:
    """One kernel call: its operands by argument name, and its purpose.

    flops    operations
    touched  bytes, if it touches only part of its arrays
    step     a step in Python instead of a kernel
    apportioned  its operations are a share of its group's (see `fusion`)
    label    the equations it computes, if more than the node's
    place    what it computes for, if it has no node
    """

    kernel: str
    node: Node | None
    flops: int
    operands: dict[str, Operand]
    buffers: tuple[Buffer, ...] = ()
    step: PythonStep | None = None
    touched: int | None = None
    apportioned: bool = False
    label: str = ""
    place: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of all arrays that the call touches, each counted once."""
        return self.touched if self.touched is not None else 4 * sum(b.words for b in self.buffers)


Part = tuple[int, int] | Call  # a half-open range of table rows, or a step in Python


def parts_of(calls: list[Call], first: int = 0) -> list[Part]:
    """Return the parts from call `first` on, in order: segments of the table, and the steps in Python."""
    stops = [i for i, call in enumerate(calls) if call.step and i >= first]
    parts: list[Part] = []
    for stop in (*stops, len(calls)):
        if first < stop:
            parts.append((first, stop))
        parts += calls[stop : stop + 1]
        first = stop + 1
    return parts


def buffers_of(operands: Mapping[str, Operand]) -> tuple[Buffer, ...]:
    """Return the distinct buffers among operands."""
    return tuple(dict.fromkeys(buffer_at(o) for o in operands.values() if isinstance(o, Place)))


def barrier(shares: Operand = PARTS) -> Call:
    """Return a barrier, after which arrays written in parts by threads are complete."""
    return Call("barrier", None, 0, {"own": OWN_SIGNAL, "shares": shares})


def buffer_at(place: Place) -> Buffer:
    """Return the buffer of a place."""
    return place.buffer if isinstance(place, At) else place
