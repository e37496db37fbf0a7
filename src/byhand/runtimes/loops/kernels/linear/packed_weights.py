"""Weights packed as the loops of generation read them, in any format that says how columns share words.

A weight is packed as [out, in], so that each result is one dot product, and an embedding is a token's row.
"""

from collections.abc import Iterator
from typing import Any

from byhand.formats.registry import Format
from byhand.runtimes.loops.kernels.formats.contract import PACKED, Packed, kernel_of
from byhand.runtimes.loops.kernels.threads import columns_of
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.views import vector
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer

STAGED = 1 << 19  # float32 of a weight that a thread packs at once: they stay in its caches


def pack_of(format: Format, kind: Packed) -> None:
    """Make the kernel that packs weights in a format."""
    shared, step, length, put = len(kind.loads), kind.step, kind.length, kind.put

    @kernel(name=kernel_of("pack", format))
    def pack(words, weight, packed, inner, width, transposed, begin, end):
        """packed[c,i] = weight[i - begin,c], i from begin to end; sixteen columns, a cache line, in a pass."""
        across, down = (inner, 1) if transposed else (1, width)
        size = length(inner)
        for first in range(0, width, 16):
            for i in range(begin, end, step):
                for c in range(first, min(first + 16, width), shared):
                    row = vector(words, packed + c // shared * size, size)
                    at, count = weight + c * across + (i - begin) * down, min(shared, width - c)
                    put(row, i, inner, words, at, across, down, count)


def load_of(kind: Packed) -> Any:
    """Make the load of a column by its number in the group, for loops over one column."""
    load0, load1, load2, load3 = (kind.loads[c % len(kind.loads)] for c in range(4))

    @compiled
    def load(row, k, i, inner):
        """Return number i of column k of the group."""
        early = load0(row, i, inner) if k == 0 else load1(row, i, inner)
        return early if k < 2 else load2(row, i, inner) if k == 2 else load3(row, i, inner)

    return load


def unpack_of(format: Format, kind: Packed) -> None:
    """Make the kernel that unpacks weights of a format for products of many rows."""
    shared, length, load = len(kind.loads), kind.length, load_of(kind)

    @kernel(name=kernel_of("unpack", format))
    def unpack(memory, words, packed, out, inner, width, part, parts):
        """out[c,:] = column c of the weight as float32, this thread's columns."""
        size = length(inner)
        low, high = columns_of(part, parts, width)
        for c in range(low, high):
            w, k, o = (
                vector(words, packed + c // shared * size, size),
                c % shared,
                vector(memory, out + c * inner, inner),
            )
            for i in range(inner):
                o[i] = load(w, k, i, inner)


for format, kind in PACKED.items():
    pack_of(format, kind)
    if not format.native:
        unpack_of(format, kind)


def pieces(rows: int, row: int, step: int = 1) -> Iterator[tuple[int, int]]:
    """Yield the first row of each piece of a weight, and the one behind its last.

    step  numbers of a column that are put at once: a piece has whole ones, and the columns that share words
    """
    whole = 16 * step
    step = -(-rows // max(1, -(-rows * row // STAGED)))
    step = -(-step // whole) * whole
    for first in range(0, rows, step):
        yield first, min(first + step, rows)


def packed_weight(builder: Builder, tensor: Any, transposed: bool, inner: int, width: int) -> Buffer:
    """Return a weight as the loops read it; unless it is stored so, the plan's preparations pack it.

    transposed  it is stored as [out, in]
    """
    weight, packed = builder.value(tensor), builder.packed
    if packed is None or (transposed and builder.weights.native):
        return weight
    if (which := (weight.name, transposed)) not in packed:
        kind = PACKED[builder.weights]
        size = kind.length(inner)
        packed[which] = Buffer(f"{weight.name}:packed", (-(-width // len(kind.loads)), size), "input", "int32")
        rows, row = (width, inner) if transposed else (inner, width)
        for first, last in pieces(rows, row, kind.step):
            columns, numbers = ((first, last), (0, inner)) if transposed else ((0, width), (first, last))
            builder.prepare(
                weight.name, first, kernel_of("pack", builder.weights),
                weight=Buffer("staging", (last - first, row), "staging"),
                packed=packed[which].at(columns[0] // len(kind.loads) * size), inner=inner,
                width=columns[1] - columns[0], transposed=int(transposed), begin=numbers[0], end=numbers[1],
            )  # fmt: skip
    return packed[which]
