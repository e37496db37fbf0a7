"""Tiles of AMX: a register is 16 rows of 64 bytes, and one instruction multiplies two of them.

Equation    C[i,j] = start[i,j] + bias[j] + sum over k of A[i,k] B[k,j],   i, j < 16 or 32
A register of C has 16 by 16 sums, one of A 16 rows of 32 numbers, one of B 16 pairs of rows of 16 numbers. Two of A
and two of B are loaded for four products, since a load takes half as long as a product. A kernel configures the
registers at its start and releases them at its end, so nothing else depends on them.
Source      Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter 20
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from byhand.runtimes.loops.kernels.products.pair_packing import pack_right_of, pack_rows
from byhand.runtimes.loops.kernels.products.register_tile import put_edge
from byhand.runtimes.loops.kernels.products.tiled_gemm import tiled_gemm_of
from byhand.runtimes.loops.kernels.products.tiles import Tiles
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES, load, number, place, store
from byhand.runtimes.loops.machine.native import ZERO, cgutils, compiled, instruction
from byhand.runtimes.loops.machine.processor import AMX_FEATURES

SIDE = 16  # rows of a register, and float32 or pairs in a row
BOTH = 2 * SIDE  # rows of a tile
LEFT, RIGHT = (4, 5), (6, 7)  # registers of A and B; those of C come first
_BYTE, _WIDE = ir.IntType(8), ir.IntType(64)
_ADDRESS = _BYTE.as_pointer()


def _call(builder: Any, name: str, *arguments: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.{name}"), arguments)


def _move(builder: Any, name: str, register: int, address: Any, row: Any) -> None:
    """Move a register whose rows are `row` float32 apart."""
    _call(builder, name, number(register, 8), builder.inttoptr(address, _ADDRESS), builder.mul(row, number(4)))


@instruction("void")
def configure(builder: Any) -> None:
    """Give all eight registers of this thread 16 rows of 64 bytes."""
    columns, rows = [64, 0] * 8, [SIDE] * 8
    content = [1] + [0] * 15 + columns + [0] * 16 + rows + [0] * 8
    kind = ir.ArrayType(_BYTE, len(content))
    slot = cgutils.alloca_once_value(builder, ir.Constant(kind, content))
    _call(builder, "ldtilecfg", builder.bitcast(slot, _ADDRESS))


@instruction("void")
def release(builder: Any) -> None:
    """Release the registers: threads switch faster without them."""
    _call(builder, "tilerelease")


def _micro_kernel(module: Any, high: int, wide: int) -> Any:
    """Return the function for `high` by `wide` registers of C, each one or two."""
    name = f"byhand_amx_tile_{high}_{wide}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_WIDE] * 11), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    c, row_c, start, row_start, bias, a, row_a, next_a, b, next_b, inner = function.args
    none = number(0)
    sums = [
        (2 * i + j, builder.mul(number(SIDE * i), row_c), number(SIDE * j)) for i in range(high) for j in range(wide)
    ]
    with builder.if_else(builder.icmp_signed("!=", start, none)) as (starts, does_not):
        with starts:
            for i in range(high):
                for j in range(wide):
                    there = place(builder, start, builder.mul(number(SIDE * i), row_start), number(SIDE * j))
                    _move(builder, "tileloadd64", 2 * i + j, there, row_start)
        with does_not, builder.if_else(builder.icmp_signed("!=", bias, none)) as (biased, empty):
            with biased:  # broadcast one row to sixteen
                for register, _, column in sums:
                    _move(builder, "tileloadd64", register, place(builder, bias, column), none)
            with empty:
                for register, _, _ in sums:
                    _call(builder, "tilezero", number(register, 8))
    with cgutils.for_range(builder, inner) as loop:
        left = place(builder, a, builder.mul(loop.index, next_a))
        right = place(builder, b, builder.mul(loop.index, next_b))
        for j in range(wide):
            _move(builder, "tileloadd64", RIGHT[j], place(builder, right, number(SIDE * j)), number(SIDE * wide))
        for i in range(high):
            there = place(builder, left, builder.mul(number(SIDE * i), row_a))
            _move(builder, "tileloadd64", LEFT[i], there, row_a)
            for j in range(wide):
                _call(builder, "tdpbf16ps", *(number(x, 8) for x in (2 * i + j, LEFT[i], RIGHT[j])))
    for register, row, column in sums:
        _move(builder, "tilestored64", register, place(builder, c, row, column), row_c)
    builder.ret_void()
    return function


@instruction("void", *["int64"] * 13)
def amx_tile(builder, high, wide, c, row_c, start, row_start, bias, a, row_a, next_a, b, next_b, inner):
    """C = start, or bias, + A B, for `high` by `wide` registers; `start` and `bias` may be 0: nothing.

    All but the strides (words from row to row, and from step to step) and `inner`, the steps, are addresses.
    """
    operands = c, row_c, start, row_start, bias, a, row_a, next_a, b, next_b, inner
    for i in (1, 2):
        for j in (1, 2):
            same = builder.icmp_signed("==", high, number(i)), builder.icmp_signed("==", wide, number(j))
            with builder.if_then(builder.and_(*same)):
                builder.call(_micro_kernel(builder.module, i, j), operands)


@instruction("void", "int64", "int64", "int64")
def put_sum(builder: Any, first: Any, second: Any, target: Any) -> None:
    """Add the vectors at two addresses."""
    store(builder, builder.fadd(load(builder, first), load(builder, second)), target)


@compiled
def put_tile(base, vectors, rows, width, c, row_c, start, bias, a, row_a, next_a, b, next_b, inner, ahead, next_ahead,
             pack_a, pack_b, edge):  # fmt: skip
    """Like `register_tile.put_tile`, without packing or prefetching."""
    wide, high = vectors * LANES, (rows + SIDE - 1) // SIDE
    at, row = base + 4 * edge, wide
    from_, row_from, plus = ZERO, ZERO, ZERO
    whole = rows == high * SIDE and width == wide
    if whole:
        at, row = base + 4 * c, row_c
        plus = base + 4 * bias if bias else ZERO
        if start:
            from_, row_from = base + 4 * start, row_c
        if start and bias:
            from_, row_from = base + 4 * edge, wide
            for i in range(rows):
                for j in range(0, width, LANES):
                    put_sum(base + 4 * (start + i * row_c + j), plus + 4 * j, from_ + 4 * (i * wide + j))
    amx_tile(high, vectors, at, row, from_, row_from, plus, base + 4 * a, row_a, next_a, base + 4 * b, next_b, inner)
    if not whole:
        put_edge(base, edge, wide, rows, width, c, row_c, start, bias)


@compiled
def left_rows(base, a, row, transposed, first, count, i, rows, new, packed, apart):
    """Locate rows of A from i on; see `tiled_gemm.left_rows`."""
    if not apart and rows == BOTH:
        return a + (i * row + first) // 2, row // 2, SIDE, ZERO, ZERO, ZERO
    steps = (count + BOTH - 1) // BOTH
    if new:
        source = base + 4 * a + 2 * (first * row + i if transposed else i * row + first)
        pack_rows(base, source, row, transposed, count, rows, BOTH, steps, packed)
    return packed, SIDE, BOTH * SIDE, ZERO, ZERO, ZERO


tiled_gemm_of(
    "tiled_gemm_amx",
    Tiles(
        rows=BOTH, vectors=2, numbers=BOTH, words=SIDE, put=put_tile, left=left_rows,
        right=pack_right_of(2, BOTH, SIDE), needs=AMX_FEATURES, begin=configure, end=release,
    ),
)  # fmt: skip
