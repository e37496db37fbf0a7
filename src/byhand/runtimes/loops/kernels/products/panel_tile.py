"""Panel tile: the micro-kernel of products with packed weights, a template over their format.

Equation    C[i,j] = sum over k of A[i,k] W[k,j],   a few rows i, one to four panels of LANES columns j

A lane is a column, so nothing is summed across lanes, and a panel is read sequentially. Each sum adds its products
in the order of k for any number of rows and panels, so a row does not depend on the rows computed with it.

Weights come from memory, and multiply-adds waiting for them fill the processor's reorder buffer. So each panel is
prefetched, and at its end the next tile's panel.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from byhand.runtimes.loops.kernels.formats.contract import Panels
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES, ROWS, VECTOR, number, place, prefetch, store
from byhand.runtimes.loops.machine.native import cgutils, instruction

REGISTERS = 3 * ROWS  # vector registers for sums
MOST = 4  # panels
AHEAD = 512  # words: prefetch distance within a panel
LINE = 16  # words of a cache line


HEIGHTS = [1 << i for i in range(ROWS.bit_length())]  # possible heights of a tile


def panels_of(rows: int, sums: int) -> int:
    """Return how many panels a tile of `rows` rows reads side by side, if each slot needs `sums` registers."""
    return max(1, min(MOST, REGISTERS // (rows * sums)))


def _micro_kernel(module: Any, name: str, kind: Panels, rows: int, panels: int) -> Any:
    """Return the function for a tile of these rows and panels, generated on a module's first use."""
    name = f"byhand_panel_tile_{name}_{rows}_{panels}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 7), name)
    function.linkage = "linkonce_odr"  # linked modules share it
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    c, row_c, a, row_a, w, panel, blocks = function.args
    zero = ir.Constant(VECTOR, [0.0] * LANES)
    sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(panels)] for _ in range(rows)]
    with cgutils.for_range(builder, blocks) as loop:
        begin, met = (builder.mul(loop.index, number(n)) for n in (kind.words, kind.left_words))
        lefts = [place(builder, a, met, builder.mul(number(i), row_a)) for i in range(rows)]
        rights = [place(builder, w, begin, builder.mul(number(v), panel)) for v in range(panels)]
        ahead = builder.add(begin, number(AHEAD))
        next_tile = builder.add(ahead, builder.mul(number(panels - 1), panel))
        ahead = builder.select(builder.icmp_signed("<", ahead, panel), ahead, next_tile)
        for v in range(panels):
            for line in range(0, kind.words, LINE):
                prefetch(builder, place(builder, w, ahead, builder.mul(number(v), panel), number(line)), 1)
        kind.multiply(builder, sums, lefts, rights)
    for i, row in enumerate(sums):
        for v, slot in enumerate(row):
            there = place(builder, c, builder.mul(number(i), row_c), number(v * LANES))
            store(builder, builder.load(slot), there)
    builder.ret_void()
    return function


def panel_tile_of(name: str, kind: Panels) -> Any:
    """Make the tile for weights of a format, callable from loops.

    (rows, panels, c, row_c, a, row_a, w, panel, blocks): the addresses of C, A and the weight, words from row to row
    and from panel to panel, and the number of blocks in a sum. C is written in whole vectors.
    """

    @instruction("void", *["int64"] * 9)
    def panel_tile(builder, rows, panels, c, row_c, a, row_a, w, panel, blocks):
        for height in HEIGHTS:
            with builder.if_then(builder.icmp_signed("==", rows, number(height))):
                for count in sorted({1, panels_of(height, kind.sums)}):
                    with builder.if_then(builder.icmp_signed("==", panels, number(count))):
                        made = _micro_kernel(builder.module, name, kind, height, count)
                        builder.call(made, (c, row_c, a, row_a, w, panel, blocks))

    return panel_tile
