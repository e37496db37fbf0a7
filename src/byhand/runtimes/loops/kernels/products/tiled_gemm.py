"""Kernel of matrix products by register tiles: no BLAS, and a start and a bias initialise the accumulators.

Equation    C = start + bias + op(A) op(B)
B is blocked for the L2 cache: a block stays there while all rows of A pass. The first row of tiles reads a block in
place and packs it for the others; a transposed A is packed in the same way by the first tile of its rows. Tiles
prefetch what comes next, rows of A or the next block of B, so that they rarely wait for memory.
Source      the order of loops: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008
"""

from __future__ import annotations

from byhand.runtimes.loops.kernels.products.packing import LINE, VECTORS, pack_columns, pack_left, vectors_of_panel
from byhand.runtimes.loops.kernels.products.register_tile import put_tile
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES, ROWS, copy_rows, get, put, transpose_tile
from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import ZERO, compiled
from byhand.runtimes.loops.machine.views import address_of

WIDEST = VECTORS * LANES
BLOCK = 160 * 1024  # float32 of B in a block: 640 KB of the L2 cache
DEPTH = 2048  # the most that is summed over in one pass


def block_columns(inner: int) -> int:
    """Return how many columns of B a block has: whole tiles."""
    return max(1, BLOCK // (inner * WIDEST)) * WIDEST


def computes_transposed(m: int, n: int, k: int, ta: int, tb: int) -> bool:
    """Return whether C^T = B^T A is computed: a packed left side is read again for each block."""
    return ta and not tb and m > n and m * min(k, DEPTH) > BLOCK  # pyright: ignore[reportReturnType]


columns_of_block, is_transposed = compiled(block_columns), compiled(computes_transposed)


@compiled
def left_rows(base, a, row, transposed, first, inner, i, rows, new, packed):
    """Return where rows of A from i on lie, their strides, where to pack them (0: nowhere), what to prefetch.

    new     this is the first block, so nothing has been packed
    packed  the place for these rows
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


@kernel(rows="m", moves={"a": "lda", "c": "ldc", "start": "ldc"}, costly=True)
def tiled_gemm(memory, c, start, bias, a, b, m, n, k, lda, ldb, ldc, ta, tb, adds, scratch):
    """C (m, n) = start + bias + op(A) op(B), added to C if `adds`, row-major at offsets of `memory`.

    start (rows as far apart as C's) and bias may be 0: nothing; with a transposed A there is no bias. For `scratch`
    see `scratch_of`.
    """
    base = address_of(memory)
    swapped = is_transposed(m, n, k, ta, tb)
    if swapped:
        a, b, m, n, lda, ldb = b, a, n, m, ldb, lda
    for first in range(0, k, DEPTH):
        inner = min(DEPTH, k - first)
        begin, plus = (c if adds else start, bias) if first == 0 else (c, 0)
        left = scratch + columns_of_block(inner) * inner
        edge = left + ((m + ROWS - 1) // ROWS if ta else 1) * ROWS * inner
        for block in range(0, n, columns_of_block(inner)):
            width = min(columns_of_block(inner), n - block)
            pack_columns(base, b + block * (ldb if tb else 1), ldb, tb, first, inner, width, scratch, ZERO)
            for i in range(0, m, ROWS):
                rows, packed = min(ROWS, m - i), left + (i * inner if ta else 0)
                tile, row_a, next_a, pack_a, ahead, next_ahead = left_rows(
                    base, a, lda, ta, first, inner, i, rows, block == 0, packed
                )
                later = (m - 1 - i) // ROWS * (width // WIDEST - 1)  # tiles to come in this block that may prefetch
                column = 0
                while column < width:
                    vectors = vectors_of_panel((width - column + LANES - 1) // LANES)
                    wide = vectors * LANES
                    there = min(wide, width - column)
                    right, next_b, pack_b = scratch + column * inner, wide, ZERO
                    if i == 0 and not tb and there == wide:
                        right, next_b, pack_b = b + first * ldb + block + column, ldb, right
                    at = (block + column) * ldc + i if swapped else i * ldc + block + column
                    from_ = begin + at if begin else ZERO
                    put_tile(
                        base, vectors, ROWS if swapped else rows, wide if swapped else there,
                        edge if swapped else c + at, wide if swapped else ldc, ZERO if swapped else from_,
                        plus + block + column if plus else ZERO, tile, row_a, next_a, right, next_b, inner, ahead,
                        next_ahead, pack_a, pack_b, edge,
                    )  # fmt: skip
                    if swapped:
                        put_transposed(base, edge, vectors, rows, there, c + at, from_, ldc)
                    if pack_a:
                        tile, next_a, pack_a = pack_a, ROWS, ZERO
                    column += wide
                    # the last tiles prefetch the next block
                    line = block + 2 * width - LINE * (later + column // wide)
                    ahead, next_ahead = right, 0
                    if block + width <= line < n:
                        ahead, next_ahead = (b + line * ldb + first, LINE) if tb else (b + first * ldb + line, ldb)


def scratch_of(m: int, n: int, k: int, ta: bool, tb: bool) -> int:
    """Return the float32 of scratch that a product needs."""
    packed = (n if computes_transposed(m, n, k, ta, tb) else m) if ta else 1
    rows = -(-packed // ROWS) * ROWS
    return max((block_columns(d) + rows) * d for d in {min(k, DEPTH), k % DEPTH or DEPTH}) + 2 * ROWS * WIDEST
