"""Calls: one kernel call of a plan and its operands: buffers, places in them, kinds of copies, numbers known late."""

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
    """An array of a plan: its name, its shape, and where it lives.

    kind    value (a share's own, placed by lifetime), input (a share's own, filled before each step), constant,
            parameter, gradient (a share's own, as large as the parameters), or own (a share's own where values
            are shared, as in decoding)
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
        """The number of rows if all other axes are one."""
        return math.prod(self.shape[:-1])

    @property
    def words(self) -> int:
        """The float32 elements of memory that it takes, by its format."""
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
        """Return the place so many elements further."""
        return At(self.buffer, self.start + start)


# Numbers that are known only when a table is made for one share and one micro-batch:
ADDS = "adds"  # 0 where a step writes to a share's gradients first, 1 afterwards
LOSS_SLOT = "loss slot"  # where this share adds its loss
PART, PARTS = "part", "parts"  # which share this is, and how many there are
OWN_SIGNAL = "own signal"  # where this share counts the barriers that it has passed

Place = Buffer | At
Operand = Place | Copy | str | int


@dataclass(frozen=True)
class PythonStep:
    """A step in Python: an equation's own forward, or its vjp, on arrays of the plan.

    inputs   of the application: a buffer, or the array of a constant, and the shape
    results  buffers of the results; in the backward pass of their cotangents
    targets  in the backward pass where each input's gradient goes, and whether it is added; None for no gradient
    keeps    the vjp follows, so what the forward saves is kept
    """

    inputs: tuple[tuple[Any, tuple[int, ...]], ...]
    results: tuple[Buffer, ...]
    targets: tuple[tuple[Buffer, Operand] | None, ...] | None = None
    keeps: bool = False


@dataclass(eq=False)
class Call:
    """One kernel call: its operands by the names of the kernel's arguments, and its purpose.

    flops    operations
    touched  bytes, if the call reads and writes less than its arrays hold
    step     a step in Python instead of a kernel
    apportioned  its operations are its part of what its group's equations compute (see `fusion`)
    label    the equations that it computes, if they are more than the node's
    place    what it computes for, where it has no node
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
        """Bytes of all arrays that the call reads or writes, each counted once."""
        return self.touched if self.touched is not None else 4 * sum(b.words for b in self.buffers)


Part = tuple[int, int] | Call  # of a table: rows from the first to before the last, or a step in Python


def parts_of(calls: list[Call], first: int = 0) -> list[Part]:
    """Return what to run in turn from call `first` on: segments of the calls' table, and the steps in Python."""
    stops = [i for i, call in enumerate(calls) if call.step and i >= first]
    parts: list[Part] = []
    for stop in (*stops, len(calls)):
        if first < stop:
            parts.append((first, stop))
        parts += calls[stop : stop + 1]
        first = stop + 1
    return parts


def buffers_of(operands: Mapping[str, Operand]) -> tuple[Buffer, ...]:
    """Return the buffers that operands name, each once."""
    return tuple(dict.fromkeys(buffer_at(o) for o in operands.values() if isinstance(o, Place)))


def barrier(shares: Operand = PARTS) -> Call:
    """Return the barrier: after it, arrays that threads wrote in parts are complete."""
    return Call("barrier", None, 0, {"own": OWN_SIGNAL, "shares": shares})


def buffer_at(place: Place) -> Buffer:
    """Return the buffer that a place lies in."""
    return place.buffer if isinstance(place, At) else place
