"""Kernels of matrix products by register tiles, a template over their kind (`tiles.py`), and the float32 kind.

Equation    C = start + bias + op(A) op(B); start and bias initialise the accumulators
B is blocked for the L2 cache: a block stays there while all rows of A pass. In float32 the first row of tiles reads a
block in place and packs it for the others, likewise the first tile of each row with a transposed A. Tiles prefetch
the next rows of A or the next block of B, so they rarely wait for memory.
Source      the order of loops: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008
"""

from __future__ import annotations

import numpy as np

from byhand.runtimes.loops.kernels.products.packing import LINE, VECTORS, pack_columns, pack_left, vectors_of_panel
from byhand.runtimes.loops.kernels.products.register_tile import put_tile
from byhand.runtimes.loops.kernels.products.tiles import TILES, Tiles, block_columns, computes_transposed
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES, ROWS, copy_rows, get, put, transpose_tile
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import ZERO, compiled
from byhand.runtimes.loops.machine.views import address_of

columns_of_block, is_transposed = compiled(block_columns), compiled(computes_transposed)


@compiled
def left_rows(base, a, row, transposed, first, inner, i, rows, new, packed, apart):
    """Return offset and strides of rows of A from i on, where to pack them (0: nowhere), and what to prefetch.

    first   index of the first of `inner` terms of the sum
    new     the first block: nothing is packed yet
    packed  the place for these rows
    apart   all rows are packed
    """
    if not transposed and rows == ROWS:
        return a + i * row + first, row, 1, ZERO, a + (i + ROWS) * row + first, ROWS
    if new and rows == ROWS:
        a += first * row
        return a + i, 1, row, packed, a + (i // LINE + 1) * LINE, row
    if new:
        pack_left(base, a + (i if transposed else i * row), row, transposed, first, inner, rows, packed)
    return packed, 1, ROWS, ZERO, packed + ROWS * inner, ROWS


@compiled
def put_transposed(base, tile, vectors, rows, width, c, start, row):
    """C = start + the transposed tile."""
    wide = vectors * LANES
    transposed = tile + ROWS * wide
    for j in range(0, wide, LANES):
        transpose_tile(base + 4 * (tile + j), wide, base + 4 * (transposed + j * ROWS), ROWS)
    for j in range(width):
        if rows == ROWS and not start:
            copy_rows(base + 4 * (transposed + j * ROWS), base + 4 * (c + j * row))
        else:
            for r in range(rows):
                value = get(base + 4 * (transposed + j * ROWS + r))
                if start:
                    value += get(base + 4 * (start + j * row + r))
                put(base + 4 * (c + j * row + r), value)


@compiled
def pack_where_needed(base, b, row, transposed, first, inner, column, width, out):
    """Pack the columns of op(B), from `column` on, that the first tiles cannot read in place."""
    pack_columns(base, b + column * (row if transposed else 1), row, transposed, first, inner, width, out, ZERO)


def tiled_gemm_of(name: str, kind: Tiles) -> None:
    """Make the kernel of products by this kind of tiles."""
    TILES[name] = kind
    put_one, left_of, right_of, begin_tiles, end_tiles = kind.put, kind.left, kind.right, kind.begin, kind.end
    rows_of_tile, numbers, words, depth, in_place = kind.rows, kind.numbers, kind.words, kind.depth, kind.in_place
    widest, most = np.int64(kind.widest), np.int64(kind.vectors)
    moves = {"a": "lda", "c": "ldc", "start": "ldc"} if kind.words == kind.numbers else {}

    @kernel(name=name, rows="m" if moves else "", moves=moves, costly=True, needs=kind.needs)
    def tiled_gemm(memory, c, start, bias, a, b, m, n, k, lda, ldb, ldc, ta, tb, adds, scratch):
        """C (m, n) = start + bias + op(A) op(B), added to C if `adds`, row-major at offsets of `memory`.

        start (with C's stride) and bias may be 0: nothing; with a transposed A there is no bias. For `scratch` see
        `Tiles.scratch`. If A's numbers are narrower than float32, it begins at a whole word.
        """
        base = address_of(memory)
        begin_tiles()
        swapped = in_place and is_transposed(m, n, k, ta, tb)
        if swapped:
            a, b, m, n, lda, ldb = b, a, n, m, ldb, lda
        apart = ta or k % numbers != 0
        for first in range(0, k, depth):
            count = min(depth, k - first)
            inner = (count + numbers - 1) // numbers
            deep = inner * words
            begin, plus = (c if adds else start, bias) if first == 0 else (c, 0)
            left = scratch + columns_of_block(deep, widest) * deep
            edge = left + ((m + rows_of_tile - 1) // rows_of_tile if apart else 1) * rows_of_tile * deep
            for block in range(0, n, columns_of_block(deep, widest)):
                width = min(columns_of_block(deep, widest), n - block)
                right_of(base, b, ldb, tb, first, count, block, width, scratch)
                for i in range(0, m, rows_of_tile):
                    rows, packed = min(rows_of_tile, m - i), left + (i * deep if apart else 0)
                    tile, row_a, next_a, pack_a, ahead, next_ahead = left_of(
                        base, a, lda, ta, first, count, i, rows, block == 0, packed, apart
                    )
                    # remaining tiles of this block that may prefetch
                    later = (m - 1 - i) // rows_of_tile * (width // widest - 1)
                    column = 0
                    while column < width:
                        vectors = vectors_of_panel((width - column + LANES - 1) // LANES, most)
                        wide = vectors * LANES
                        there = min(wide, width - column)
                        right, next_b, pack_b = scratch + column * deep, wide * words, ZERO
                        if in_place and i == 0 and not tb and there == wide:
                            right, next_b, pack_b = b + first * ldb + block + column, ldb, right
                        at = (block + column) * ldc + i if swapped else i * ldc + block + column
                        from_ = begin + at if begin else ZERO
                        put_one(
                            base, vectors, rows_of_tile if swapped else rows, wide if swapped else there,
                            edge if swapped else c + at, wide if swapped else ldc, ZERO if swapped else from_,
                            plus + block + column if plus else ZERO, tile, row_a, next_a, right, next_b, inner, ahead,
                            next_ahead, pack_a, pack_b, edge,
                        )  # fmt: skip
                        if swapped:
                            put_transposed(base, edge, vectors, rows, there, c + at, from_, ldc)
                        if pack_a:
                            tile, next_a, pack_a = pack_a, rows_of_tile, ZERO
                        column += wide
                        if in_place:  # the last tiles prefetch the next block
                            line = block + 2 * width - LINE * (later + column // wide)
                            ahead, next_ahead = right, 0
                            if block + width <= line < n:
                                ahead, next_ahead = b + first * ldb + line, ldb
                                if tb:
                                    ahead, next_ahead = b + line * ldb + first, LINE
        end_tiles()


tiled_gemm_of(
    "tiled_gemm",
    Tiles(rows=ROWS, vectors=VECTORS, put=put_tile, left=left_rows, right=pack_where_needed, in_place=True),
)
