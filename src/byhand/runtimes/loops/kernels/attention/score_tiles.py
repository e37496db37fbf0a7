"""Score tiles: ROWS queries of a head at a time, forward and backward.

A head's keys, transposed, and its values are packed once for register tiles. Rows of scores lie `stride` apart. The
memory sizes and the products' operations are at the end.
"""

from __future__ import annotations

import numpy as np

from byhand.runtimes.loops.kernels.products.packing import VECTORS, pack_columns, pack_left, pack_right
from byhand.runtimes.loops.kernels.products.register_tile import register_tile
from byhand.runtimes.loops.kernels.vector.arithmetic import exp, largest
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES, ROWS
from byhand.runtimes.loops.machine.native import ONE, ZERO, compiled
from byhand.runtimes.loops.machine.views import vector

F = np.float32
PAIR = 2 * LANES  # keys in a tile of scores: three vectors would compute more masked scores
EVEN = max(LANES, ROWS)  # keys are padded to a multiple: tiles read and write whole vectors and rows


@compiled
def softmax_rows(memory, words, scores, first, keys, stride, begin, covered, scale, causal, window):
    """Softmax of scale times ROWS rows of scores, in place; row i sees `window` keys up to first + i.

    Masked weights are 0. Tiles cover the keys from `begin` to `covered`. The loop with exp runs to that end: whole
    vectors cost less than a shorter row's remainder.
    """
    for i in range(ROWS):
        low = max(begin, first + i + 1 - window)
        row, n = scores + i * stride + low, covered - low
        p = vector(memory, row, n)
        visible = (min(first + i + 1, keys) if causal else keys) - low
        m = largest(words, row, visible)
        z = F(0)
        for s in range(n):
            e = exp((p[s] - m) * scale) if s < visible else F(0)
            p[s] = e
            z += e
        z = F(1.0) / z
        for s in range(n):
            p[s] *= z
        vector(memory, scores + i * stride + begin, low - begin)[:] = F(0)


@compiled
def softmax_rows_back(memory, d_weights, weights, stride, begin, covered, scale):
    """d = scale p (d - sum of d p) for ROWS rows, in place; 0 where masked, since p is 0."""
    covered -= begin
    for i in range(ROWS):
        at = i * stride + begin
        d, p = vector(memory, d_weights + at, covered), vector(memory, weights + at, covered)
        dot = F(0)
        for s in range(covered):
            dot += d[s] * p[s]
        for s in range(covered):
            d[s] = scale * p[s] * (d[s] - dot)


@compiled
def pack_pairs(base, keys, row, steps, width, out):
    """Pack keys (steps, width) transposed, as panels (width, PAIR); return the number of keys with padding."""
    padded = (steps + EVEN - 1) // EVEN * EVEN
    for s in range(0, padded, PAIR):
        vectors = min(PAIR, padded - s) // LANES
        pack_right(base, keys + s * row, row, ONE, ZERO, width, min(PAIR, steps - s), vectors, out + s * width)
    return padded


@compiled
def row_tiles(base, a, row, first, steps, width, scratch):
    """Return the offset and strides of ROWS rows of A from `first` on; packs them if fewer are left."""
    if first + ROWS <= steps:
        return a + first * row, row, ONE
    pack_left(base, a + first * row, row, ZERO, ZERO, width, steps - first, scratch)
    return scratch, ONE, ROWS


@compiled
def scores_of(base, scores, stride, a, row_a, next_a, packed, begin, seen, padded, width):
    """Fill ROWS rows of scores with A times packed keys, at least from `begin` to `seen`; return the end."""
    s = begin
    while s < seen:
        vectors = min(PAIR, padded - s) // LANES
        right = base + 4 * (packed + s * width)
        register_tile(
            vectors, base + 4 * (scores + s), stride, ZERO, ZERO, ZERO, base + 4 * a, row_a, next_a, right,
            vectors * LANES, width, right, ZERO, ZERO, ZERO,
        )  # fmt: skip
        s += vectors * LANES
    return s


@compiled
def first_key(first, window):
    """Return the first key of the tiles needed by the query `first` and later ones."""
    return max(0, first + 1 - window) // PAIR * PAIR


@compiled
def pack_head(base, k, row_k, v, row_v, steps, width, scratch):
    """Pack a head's keys and values; return the number of keys with padding."""
    pack_columns(base, v, row_v, ZERO, ZERO, steps, width, scratch + (steps + EVEN) * width, ONE)
    return pack_pairs(base, k, row_k, steps, width, scratch)


@compiled
def store_head(memory, k, row_k, v, row_v, keys, values, steps, width, places):
    """Store the last keys and values of a head in its cache (places, D), position t in place t % places."""
    for t in range(max(0, steps - places), steps):
        store(memory, k + t * row_k, v + t * row_v, keys, values, t % places, width)


@compiled
def store(memory, k, v, keys, values, place, width):
    """Store a key and a value at a place of a head's cache (places, D)."""
    new_k, new_v = vector(memory, k, width), vector(memory, v, width)
    kept_k, kept_v = vector(memory, keys + place * width, width), vector(memory, values + place * width, width)
    for d in range(width):
        kept_k[d] = new_k[d]
        kept_v[d] = new_v[d]


def product_flops(sizes: dict[str, int]) -> int:
    """Return the FLOPs of one (T, S, D) product over all heads, excluding tiles that the mask skips."""
    steps, window = sizes["steps"], sizes["window"]
    ends = ((f, min(f + ROWS, steps) if sizes["causal"] else steps) for f in range(0, steps, ROWS))
    visible = sum(min(ROWS, steps - f) * (end - max(0, f + 1 - window) // PAIR * PAIR) for f, end in ends)
    return 2 * sizes["batch"] * sizes["heads"] * visible * sizes["width"]


def stride_of(steps: int) -> int:
    """Return the stride of rows of weights: whole vectors, avoiding the same cache sets."""
    return -(-steps // EVEN) * EVEN + LANES * (steps % 128 == 0)


def scratch_of_attention(steps: int, width: int) -> int:
    """Return the float32 of scratch that a head needs, forward or backward."""
    return (steps + EVEN) * width + 3 * steps * (width + PAIR) + ROWS * width + ROWS * VECTORS * LANES


def weights_of(sizes: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of the stored weights."""
    return sizes["batch"], sizes["heads"], -(-sizes["steps"] // ROWS) * ROWS, stride_of(sizes["steps"])
