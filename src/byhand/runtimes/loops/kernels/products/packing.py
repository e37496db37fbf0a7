"""Packing: how the two sides of a product are laid out for register tiles.

The right side becomes columns of tiles, (inner, vectors) each, so that a tile reads it in one stream. The left side
is read where it lies, or laid out by the tile that reads it first; only where fewer rows are left than a tile has,
they become a tile of their own, (inner, ROWS).
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import numpy as np

from byhand.runtimes.loops.kernels.vector.vector_moves import (
    LANES,
    ROWS,
    copy_vector,
    fetch_line,
    get,
    put,
    transpose_square,
)
from byhand.runtimes.loops.machine.native import compiled

F = np.float32
VECTORS = 3  # the most that a register tile is wide
LINE = 16  # float32 in a cache line
SOON = 24  # rows that are fetched before they are laid out


@compiled
def vectors_of_panel(left):
    """Return how many vectors the next tiles take of those that are left: three, but not three and one of four."""
    return 2 if left == 4 else min(left, VECTORS)


@compiled
def pack_right(base, b, row, transposed, first, inner, width, vectors, out):
    """Lay out `width` columns of op(B), k from `first` on, as (inner, vectors); what is missing is 0."""
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
                fetch_line(base + 4 * (b + (k + SOON) * row + j))
                copy_vector(base + 4 * (b + k * row + j), base + 4 * (out + k * wide + j))
            for j in range(whole, width):
                put(base + 4 * (out + k * wide + j), get(base + 4 * (b + k * row + j)))
    if width < wide:
        for k in range(inner):
            for j in range(width, wide):
                put(base + 4 * (out + k * wide + j), F(0))


@compiled
def pack_left(base, a, row, transposed, first, inner, rows, out):
    """Lay out fewer than ROWS rows of op(A), k from `first` on, as a tile (inner, ROWS); what is missing is 0."""
    for i in range(ROWS):
        for k in range(inner):
            at = a + ((first + k) * row + i if transposed else i * row + first + k)
            put(base + 4 * (out + k * ROWS + i), get(base + 4 * at) if i < rows else F(0))


@compiled
def pack_columns(base, b, row, transposed, first, inner, width, out, whole):
    """Lay out `width` columns of op(B), k from `first` on, as tiles of as many vectors as `vectors_of_panel` says.

    whole  all tiles; else only those that cannot be read where they lie
    """
    column = 0
    while column < width:
        vectors = vectors_of_panel((width - column + LANES - 1) // LANES)
        there = min(vectors * LANES, width - column)
        if whole or transposed or there < vectors * LANES:
            at = b + (column * row if transposed else column)
            pack_right(base, at, row, transposed, first, inner, there, vectors, out + column * inner)
        column += vectors * LANES
