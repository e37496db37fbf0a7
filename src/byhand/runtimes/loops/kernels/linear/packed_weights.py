"""Weights packed in panels for generation, in any format with `Panels`."""

from collections.abc import Iterator
from math import lcm
from typing import Any

from byhand.formats.registry import Format
from byhand.runtimes.loops.kernels.formats.contract import PANELS, Panels, kernel_of
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer

LINE = 16  # columns: a cache line, so whole panels
STAGED = 1 << 19  # float32 of a weight that a thread packs at once: few enough for its caches


def pack_of(format: Format, kind: Panels) -> None:
    """Make the kernel that packs weights in a format."""
    block, size, put = kind.block, kind.words, kind.put

    @kernel(name=kernel_of("pack", format))
    def pack(words, weight, packed, inner, width, transposed, begin, end):
        """packed[c,i] = weight[i - begin,c], i from begin to end; one cache line of columns per pass."""
        across, down = (inner, 1) if transposed else (1, width)
        panel = (inner + block - 1) // block * size
        for first in range(0, width, LANES):
            for i in range(begin, end, block):
                source = weight + first * across + (i - begin) * down
                at, count = packed + first // LANES * panel + i // block * size, min(block, end - i)
                for lane in range(LANES):
                    put(words, source + lane * across, down, count if first + lane < width else 0, at, lane)


for format, kind in PANELS.items():
    pack_of(format, kind)


def pieces(rows: int, row: int, whole: int = 1) -> Iterator[tuple[int, int]]:
    """Yield (first row, end) of each piece of a weight, multiples of `whole`."""
    step = -(-rows // max(1, -(-rows * row // STAGED)))
    step = -(-step // whole) * whole
    for first in range(0, rows, step):
        yield first, min(first + step, rows)


def packed_weight(builder: Builder, tensor: Any, transposed: bool, inner: int, width: int) -> Buffer:
    """Return a packed weight for generation; the plan's preparations pack it.

    transposed  it is stored as [out, in]
    """
    weight, packed = builder.value(tensor), builder.packed
    assert packed is not None
    if (which := (weight.name, transposed)) not in packed:
        kind = PANELS[builder.weights]
        size = kind.size(inner)
        packed[which] = Buffer(f"{weight.name}:packed", (-(-width // LANES), size), "input", "int32")
        rows, row = (width, inner) if transposed else (inner, width)
        for first, last in pieces(rows, row, lcm(LINE, kind.block)):
            columns, numbers = ((first, last), (0, inner)) if transposed else ((0, width), (first, last))
            builder.prepare(
                weight.name, first, kernel_of("pack", builder.weights),
                weight=Buffer("staging", (last - first, row), "staging"),
                packed=packed[which].at(columns[0] // LANES * size), inner=inner, width=columns[1] - columns[0],
                transposed=int(transposed), begin=numbers[0], end=numbers[1],
            )  # fmt: skip
    return packed[which]
