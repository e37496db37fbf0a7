"""Calls: one kernel call of a plan and its operands: buffers, places inside them, numbers known late."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byhand.engine import Node

if TYPE_CHECKING:
    from byhand.runtimes.loops.lowering.plan import Share


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
        """The float32 elements of memory that it takes: half as many for bfloat16."""
        return -(-self.size // 2) if self.dtype == "bfloat16" else self.size


@dataclass(frozen=True)
class At:
    """A place inside a buffer, in elements from its start."""

    buffer: Buffer
    start: int

    @property
    def words(self) -> int:
        """The start in float32 elements of memory."""
        return self.start // 2 if self.buffer.dtype == "bfloat16" else self.start


@dataclass(frozen=True)
class Rows:
    """Some rows of a buffer that is seen as a matrix, as an operand of a product."""

    buffer: Buffer
    first: int
    count: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.count, self.buffer.shape[-1]

    @property
    def dtype(self) -> str:
        """The buffer's."""
        return self.buffer.dtype

    @property
    def place(self) -> At:
        """Where they begin."""
        return At(self.buffer, self.first * self.buffer.shape[-1])


@dataclass(frozen=True)
class Late:
    """A number that is known only when a table is made for one share and one micro-batch."""

    name: str


ADDS = Late("adds")  # 0 where a step writes to a share's gradients first, 1 afterwards
LOSS_SLOT = Late("loss slot")  # where this share adds its loss
PART, PARTS = Late("part"), Late("parts")  # which share this is, and how many there are
OWN_SIGNAL = Late("own signal")  # where this share counts the barriers that it has passed

Operand = Buffer | At | Late | int


@dataclass(eq=False)
class Call:
    """One kernel call: its operands by the names of the kernel's arguments, and its purpose.

    flops    operations
    touched  bytes, if the call reads and writes less than its arrays hold
    run      a step in Python instead of a kernel: an equation's own forward or derivative
    shared   its operations are its part of what its group's equations compute (see `fusion`)
    label    the equations that it computes, if they are more than the node's
    """

    kernel: str
    node: Node | None
    flops: int
    operands: dict[str, Operand]
    buffers: tuple[Buffer, ...] = ()
    run: Callable[[Share], None] | None = None
    touched: int | None = None
    shared: bool = False
    label: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of all arrays that the call reads or writes, each counted once."""
        return self.touched if self.touched is not None else 4 * sum(b.words for b in self.buffers)


Part = tuple[int, int] | Call  # of a table: rows from the first to before the last, or a step in Python


def parts_of(calls: list[Call], first: int = 0) -> list[Part]:
    """Return what to run in turn from call `first` on: stretches of the calls' table, and the steps in Python."""
    stops = [i for i, call in enumerate(calls) if call.run and i >= first]
    parts: list[Part] = []
    for stop in (*stops, len(calls)):
        if first < stop:
            parts.append((first, stop))
        parts += calls[stop : stop + 1]
        first = stop + 1
    return parts


def buffers_of(operands: Mapping[str, Operand]) -> tuple[Buffer, ...]:
    """Return the buffers that operands name, each once."""
    buffers = {id(b): b for o in operands.values() if (b := buffer_of(o)) is not None}
    return tuple(buffers.values())


def meet(shares: Operand = PARTS) -> Call:
    """Return the barrier: after it, arrays that threads wrote in parts are complete."""
    return Call("barrier", None, 0, {"own": OWN_SIGNAL, "shares": shares})


@dataclass(frozen=True)
class Product:
    """C = start + bias + op(A) op(B) (+ C) over the rows of each buffer.

    inner   the length that is summed over
    ta, tb  whether A and B lie transposed
    adds    whether it is added to what C holds
    """

    a: Buffer | Rows
    b: Buffer | Rows
    c: Buffer | Rows
    inner: int
    ta: bool = False
    tb: bool = False
    adds: Operand = 0
    start: Buffer | Rows | None = None
    bias: Buffer | None = None


def place_of(operand: Buffer | Rows) -> Buffer | At:
    """Return where an operand of a product begins."""
    return operand.place if isinstance(operand, Rows) else operand


def buffer_of(operand: Operand) -> Buffer | None:
    """Return the buffer that an operand names, if any."""
    if isinstance(operand, At):
        return operand.buffer
    return operand if isinstance(operand, Buffer) else None
