"""Packing of 16-bit numbers, two consecutive terms of a sum per word.

B becomes panels, (pairs, columns), as in `packing.py` for float32: both register tiles and AMX tiles load this
layout. A becomes panels, (pairs, rows), or blocks of rows in their original order.
Strides of matrices are in numbers, offsets of packed ones in words; both are padded with zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.runtimes.loops.kernels.products.packing import vectors_of_panel
from byhand.runtimes.loops.kernels.vector.vector_moves import (
    LANES,
    copy_vector,
    get_half,
    put_bits,
    put_pairs_of,
    transpose_columns,
    transpose_pairs,
)
from byhand.runtimes.loops.machine.native import compiled

NONE, HALF = np.int32(0), np.int32(16)


@compiled
def put_pair(target, source, down, count):
    """Pack the numbers at an address and `down` behind it, if `count` numbers are left, else with 0."""
    word = get_half(source) if count > 0 else NONE
    if count > 1:
        word |= get_half(source + 2 * down) << HALF
    put_bits(target, word)


def pack_pairs_of(lanes: int) -> Any:
    """Make the packing of a panel, `lanes` columns at a time."""
    put_pairs, whole_vectors = put_pairs_of(lanes), lanes == LANES

    @compiled
    def pack_pairs(base, source, row, across, count, width, wide, pairs, out):
        """Pack `width` columns of a matrix (count, width) at an address as a panel (pairs, wide).

        across  stored transposed: a column is contiguous
        """
        down, along = (1, row) if across else (row, 1)
        whole, fast = width // lanes * lanes, count // 2
        if across:
            fast = fast // lanes * lanes if whole_vectors else 0
            for j in range(0, whole, lanes):
                for p in range(0, fast, lanes):
                    transpose_pairs(source + 2 * (j * row + 2 * p), row, base + 4 * (out + p * wide + j), wide)
        else:
            for p in range(fast):
                here = source + 4 * p * row
                for j in range(0, whole, lanes):
                    put_pairs(here + 2 * j, here + 2 * (row + j), base + 4 * (out + p * wide + j))
        for p in range(pairs):
            for j in range(whole if p < fast else 0, wide):
                there = count - 2 * p if j < width else 0
                put_pair(base + 4 * (out + p * wide + j), source + 2 * (2 * p * down + j * along), down, there)

    return pack_pairs


pack_panel = pack_pairs_of(LANES)


def pack_right_of(most: int, numbers: int, words: int) -> Any:
    """Make `Tiles.right` for tiles up to `most` vectors wide, with these numbers and words per step."""
    limit = np.int64(most)

    @compiled
    def pack_right(base, b, row, transposed, first, count, column, width, out):
        """Pack `width` columns of op(B) from `column` on, `count` numbers from `first` on."""
        down, along = (1, row) if transposed else (row, 1)
        deep = (count + numbers - 1) // numbers * words
        done = 0
        while done < width:
            vectors = vectors_of_panel((width - done + LANES - 1) // LANES, limit)
            wide = vectors * LANES
            source = base + 4 * b + 2 * (first * down + (column + done) * along)
            pack_panel(base, source, row, transposed, count, min(wide, width - done), wide, deep, out + done * deep)
            done += wide

    return pack_right


@compiled
def pack_rows(base, source, row, across, count, rows, all_rows, steps, out):
    """Pack rows of a matrix (rows, count) at an address as blocks (steps, all_rows, LANES), pairs of each row.

    across  stored transposed: a row's numbers are `row` apart
    """
    down, along = (row, 1) if across else (1, row)
    for step in range(steps):
        block, here, left = out + step * all_rows * LANES, source + 4 * LANES * step * down, count - 2 * LANES * step
        done = 0
        if left >= 2 * LANES:
            if across:
                done = rows // LANES * LANES
                for i in range(0, done, LANES):
                    transpose_columns(here + 2 * i, row, base + 4 * (block + i * LANES), LANES)
            else:
                done = rows
                for i in range(done):
                    copy_vector(here + 2 * i * row, base + 4 * (block + i * LANES))
        for i in range(done, all_rows):
            for p in range(LANES):
                there = left - 2 * p if i < rows else 0
                put_pair(base + 4 * (block + i * LANES + p), here + 2 * (2 * p * down + i * along), down, there)
