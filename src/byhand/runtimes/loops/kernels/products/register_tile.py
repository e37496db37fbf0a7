"""Register tile: the micro-kernel of products, a template over a lane's multiplication.

Its sums stay in registers over the whole inner length.

Equation    C[i,j] = start[i,j] + bias[j] + sum over k of A[i,k] B[k,j],   i < ROWS, j < 1, 2 or 3 vectors

For each k it reads ROWS words of A, at any stride, and one to three adjacent vectors of B, and makes ROWS times as
many multiply-adds. A word is a float32, or a pair of narrower numbers of the sum. A processor reads two vectors per
cycle and multiplies two, so registers, not memory, set the pace. Products and attention are loops over such tiles.
It is generated as LLVM vector code: no compiler keeps the sums of a plain loop in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from byhand.runtimes.loops.kernels.products.packing import VECTORS, vectors_of_panel
from byhand.runtimes.loops.kernels.vector.vector_moves import (
    LANES,
    ROWS,
    VECTOR,
    broadcast,
    get,
    load,
    multiply_add,
    number,
    place,
    prefetch,
    put,
    store,
)
from byhand.runtimes.loops.machine.native import ZERO, cgutils, compiled, instruction

Multiply = Callable[[Any, Any, Any, Any], Any]
AHEAD = 8  # rows of B: prefetch distance


def _micro_kernel(module: Any, of: str, add_product: Multiply, vectors: int) -> Any:
    """Return the function for a tile of `vectors` vectors, generated on a module's first use.

    Never inlined: the compiler would allocate its registers differently each time.
    """
    name = f"byhand_register_tile{of}_{vectors}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 15), name)
    function.linkage = "linkonce_odr"  # linked modules share it
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    c, row_c, start, row_start, bias, a, row_a, next_a, b, next_b, inner, *aside = function.args
    ahead, next_ahead, pack_a, pack_b = aside
    columns = [number(LANES * j) for j in range(vectors)]
    zero = ir.Constant(VECTOR, [0.0] * LANES)
    first = [cgutils.alloca_once_value(builder, zero) for _ in columns]
    with builder.if_then(builder.icmp_signed("!=", bias, number(0))):
        for slot, column in zip(first, columns, strict=True):
            builder.store(load(builder, place(builder, bias, column)), slot)
    sums = [[cgutils.alloca_once_value(builder, builder.load(slot)) for slot in first] for _ in range(ROWS)]
    has_start = builder.icmp_signed("!=", start, number(0))
    starts = [[place(builder, start, builder.mul(number(i), row_start), column) for column in columns]
              for i in range(ROWS)]  # fmt: skip
    with builder.if_then(has_start):
        for there in (there for row in starts for there in row):
            prefetch(builder, there, 2)
    with cgutils.for_range(builder, inner) as loop:
        left = place(builder, a, builder.mul(loop.index, next_a))
        right = place(builder, b, builder.mul(loop.index, next_b))
        for column in columns:
            prefetch(builder, place(builder, right, column, builder.mul(next_b, number(AHEAD))), 1)
        prefetch(builder, place(builder, ahead, builder.mul(loop.index, next_ahead)), 2)
        rights = [load(builder, place(builder, right, column)) for column in columns]
        with builder.if_then(builder.icmp_signed("!=", pack_b, number(0))):
            for value, column in zip(rights, columns, strict=True):
                packed = place(builder, pack_b, builder.mul(loop.index, number(vectors * LANES)), column)
                store(builder, value, packed)
        with builder.if_then(builder.icmp_signed("!=", pack_a, number(0))):
            packed = place(builder, pack_a, builder.mul(loop.index, number(ROWS)))
            store(builder, load(builder, left, ir.VectorType(ir.FloatType(), ROWS)), packed)
        for i, row in enumerate(sums):
            left_value = broadcast(builder, place(builder, left, builder.mul(number(i), row_a)))
            for slot, value in zip(row, rights, strict=True):
                builder.store(add_product(builder, left_value, value, builder.load(slot)), slot)
    # Last: beside a large start, as a residual stream can be, each term of the sum would be rounded to its spacing.
    with builder.if_then(has_start):
        for row, of_row in zip(sums, starts, strict=True):
            for slot, there in zip(row, of_row, strict=True):
                builder.store(builder.fadd(builder.load(slot), load(builder, there)), slot)
    for i, row in enumerate(sums):
        for slot, column in zip(row, columns, strict=True):
            store(builder, builder.load(slot), place(builder, c, builder.mul(number(i), row_c), column))
    builder.ret_void()
    return function


def register_tile_of(of: str, add_product: Multiply) -> Any:
    """Make the tile for add_product(builder, x, y, z), which multiplies words lane by lane and adds z."""

    @instruction("void", *["int64"] * 16)
    def register_tile(builder, vectors, c, row_c, start, row_start, bias, a, row_a, next_a, b, next_b, inner, ahead,
                      next_ahead, pack_a, pack_b):  # fmt: skip
        """C = start + bias + A B for ROWS rows and `vectors` vectors; `start` and `bias` may be 0: nothing.

        All but `vectors`, `inner` and the strides (words from row to row, and from one k to the next) are addresses.
        ahead           where to prefetch a cache line for each k, for the next tiles
        pack_a, pack_b  where to pack the operands for later tiles, or 0; packing A needs contiguous rows
        """
        operands = (
            c,
            row_c,
            start,
            row_start,
            bias,
            a,
            row_a,
            next_a,
            b,
            next_b,
            inner,
            ahead,
            next_ahead,
            pack_a,
            pack_b,
        )
        for count in range(1, VECTORS + 1):
            with builder.if_then(builder.icmp_signed("==", vectors, number(count))):
                builder.call(_micro_kernel(builder.module, of, add_product, count), operands)

    return register_tile


@compiled
def put_edge(base, edge, wide, rows, width, c, row_c, start, bias):
    """C = start + bias + the part of a tile, `wide` numbers per row, that lies in C."""
    for r in range(rows):
        for j in range(width):
            value = get(base + 4 * (edge + r * wide + j))
            if bias:
                value += get(base + 4 * (bias + j))
            if start:
                value += get(base + 4 * (start + r * row_c + j))
            put(base + 4 * (c + r * row_c + j), value)


def put_tile_of(register_tile: Any) -> Any:
    """Make the function that writes a whole or partial tile of C."""

    @compiled
    def put_tile(base, vectors, rows, width, c, row_c, start, bias, a, row_a, next_a, b, next_b, inner, ahead,
                 next_ahead, pack_a, pack_b, edge):  # fmt: skip
        """A register tile at offsets from `base`. A partial tile goes to `edge` first.

        a, b and the strides as above; start (rows as far apart as C's) and bias may be 0.
        """
        wide = vectors * LANES
        pack_a, pack_b = base + 4 * pack_a if pack_a else ZERO, base + 4 * pack_b if pack_b else ZERO
        plus = base + 4 * bias if bias else ZERO
        if rows == ROWS and width == wide:
            register_tile(
                vectors, base + 4 * c, row_c, base + 4 * start if start else ZERO, row_c, plus, base + 4 * a,
                row_a, next_a, base + 4 * b, next_b, inner, base + 4 * ahead, next_ahead, pack_a, pack_b,
            )  # fmt: skip
            return
        register_tile(
            vectors, base + 4 * edge, wide, ZERO, ZERO, ZERO, base + 4 * a, row_a, next_a, base + 4 * b, next_b,
            inner, base + 4 * ahead, next_ahead, pack_a, pack_b,
        )  # fmt: skip
        put_edge(base, edge, wide, rows, width, c, row_c, start, bias)

    return put_tile


register_tile = register_tile_of("", multiply_add)
put_tile = put_tile_of(register_tile)


@compiled
def put_tiles(base, rows, width, c, row_c, adds, a, row_a, next_a, b, deep, skip, inner, edge):
    """ROWS rows of C (+)= A B, all columns; B is packed, `deep` long, and used from row `skip` on."""
    column = 0
    while column < width:
        vectors = vectors_of_panel((width - column + LANES - 1) // LANES, VECTORS)
        wide = vectors * LANES
        at, right = c + column, b + column * deep + skip * wide
        there = min(wide, width - column)
        put_tile(
            base, vectors, rows, there, at, row_c, at if adds else ZERO, ZERO, a, row_a, next_a, right, wide, inner,
            a + AHEAD * 2 * next_a, next_a, ZERO, ZERO, edge,
        )  # fmt: skip
        column += wide
