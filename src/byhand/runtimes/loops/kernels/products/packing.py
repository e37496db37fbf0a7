"""Packing the operands of a product for register tiles.

B becomes panels, (inner, vectors) each, which a tile reads sequentially. A is read in place, or packed by the first
tile that reads it; only a remainder of fewer than ROWS rows becomes a separate panel, (inner, ROWS).
"""

from __future__ import annotations

import numpy as np

from byhand.runtimes.loops.kernels.vector.vector_moves import (
    LANES,
    ROWS,
    copy_vector,
    get,
    prefetch_line,
    put,
    transpose_square,
)
from byhand.runtimes.loops.machine.native import compiled

F = np.float32
VECTORS = 3  # the most a register tile is wide
LINE = 16  # float32 in a cache line
DISTANCE = 24  # rows: how far ahead packing prefetches


@compiled
def vectors_of_panel(left, most):
    """Return the width of the next panel in vectors, given those left: at most three, but four are two and two."""
    return 2 if left == 4 else min(left, most)


@compiled
def pack_right(base, b, row, transposed, first, inner, width, vectors, out):
    """Pack `width` columns of op(B), k from `first` on, as a panel (inner, vectors), padded with 0."""
    wide = vectors * LANES
    if transposed:
        b += first
        whole, deep = width // LANES * LANES, inner // LANES * LANES
        for j in range(0, whole, LANES):
            for k in range(0, deep, LANES):
                transpose_square(base + 4 * (b + j * row + k), row, base + 4 * (out + k * wide + j), wide)
        for k in range(inner):
            for j in range(whole if k < deep else 0, width):
                put(base + 4 * (out + k * wide + j), get(base + 4 * (b + j * row + k)))
    else:
        b += first * row
        whole = width // LANES * LANES
        for k in range(inner):
            for j in range(0, whole, LANES):
                prefetch_line(base + 4 * (b + (k + DISTANCE) * row + j))
                copy_vector(base + 4 * (b + k * row + j), base + 4 * (out + k * wide + j))
            for j in range(whole, width):
                put(base + 4 * (out + k * wide + j), get(base + 4 * (b + k * row + j)))
    if width < wide:
        for k in range(inner):
            for j in range(width, wide):
                put(base + 4 * (out + k * wide + j), F(0))


@compiled
def pack_left(base, a, row, transposed, first, inner, rows, out):
    """Pack fewer than ROWS rows of op(A), k from `first` on, as a panel (inner, ROWS), padded with 0."""
    for i in range(ROWS):
        for k in range(inner):
            at = a + ((first + k) * row + i if transposed else i * row + first + k)
            put(base + 4 * (out + k * ROWS + i), get(base + 4 * at) if i < rows else F(0))


@compiled
def pack_columns(base, b, row, transposed, first, inner, width, out, whole):
    """Pack `width` columns of op(B), k from `first` on, as panels of `vectors_of_panel` vectors.

    whole  all panels; else only those that cannot be read in place
    """
    column = 0
    while column < width:
        vectors = vectors_of_panel((width - column + LANES - 1) // LANES, VECTORS)
        there = min(vectors * LANES, width - column)
        if whole or transposed or there < vectors * LANES:
            at = b + (column * row if transposed else column)
            pack_right(base, at, row, transposed, first, inner, there, vectors, out + column * inner)
        column += vectors * LANES
