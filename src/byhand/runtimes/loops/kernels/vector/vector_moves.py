"""Moves by address: of a number, of whole vectors, and of a square, transposed.

A loop over so few numbers first checks whether its arrays overlap, which takes longer than the copy; and a function
that takes an array counts a reference, which makes the processor wait for all earlier writes: 50 ns, a quarter of a
register tile. Addresses avoid both.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from byhand.runtimes.loops.machine.native import cgutils, instruction
from byhand.runtimes.loops.machine.processor import cpu_features

_HAS = cpu_features()
LANES = 16 if "avx512f" in _HAS else 8 if "avx2" in _HAS else 4  # float32 in a vector
ROWS = 4 if LANES == 8 else 8  # of a register tile: with three vectors its sums take 24 of 32 registers, or 12 of 16
VECTOR = ir.VectorType(ir.FloatType(), LANES)
INTEGERS = ir.VectorType(ir.IntType(32), LANES)


def number(value: int, bits: int = 64) -> Any:
    """Return an integer constant."""
    return ir.Constant(ir.IntType(bits), value)


def constant(value: int) -> Any:
    """Return a vector with this integer in every lane."""
    return ir.Constant(INTEGERS, [value] * LANES)


def broadcast(builder: Any, address: Any, kind: Any = VECTOR) -> Any:
    """Return the number at an address in every lane."""
    single = builder.load(builder.inttoptr(address, kind.element.as_pointer()))
    nothing = ir.Constant(kind, ir.Undefined)
    filled = builder.insert_element(nothing, single, number(0, 32))
    return builder.shuffle_vector(filled, nothing, constant(0))


def multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return x y + z."""
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
    return builder.call(function, [x, y, z])


def place(builder: Any, base: Any, *offsets: Any, size: int = 4) -> Any:
    """Return the address `base` plus offsets in elements of `size` bytes."""
    for offset in offsets:
        base = builder.add(base, builder.mul(offset, number(size)))
    return base


def load(builder: Any, address: Any, kind: Any = VECTOR, align: int = 4) -> Any:
    """Return the vector at an address, which need only be aligned to an element."""
    value = builder.load(builder.inttoptr(address, kind.as_pointer()))
    value.align = align
    return value


def pairs_of(builder: Any, first: Any, second: Any, lanes: int) -> Any:
    """Return words of two 16-bit numbers: one from the row at the first address, one from the second row."""
    halves, words = (ir.VectorType(ir.IntType(bits), lanes) for bits in (16, 32))
    low, high = (builder.zext(load(builder, row, halves, 2), words) for row in (first, second))
    return builder.or_(low, builder.shl(high, ir.Constant(words, [16] * lanes)))


def store(builder: Any, value: Any, address: Any) -> None:
    """Store a vector at an address."""
    builder.store(value, builder.inttoptr(address, value.type.as_pointer())).align = 4


def prefetch(builder: Any, address: Any, cache: int) -> None:
    """Prefetch a line into the L1 or the L2 cache; any address is allowed."""
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, *[ir.IntType(32)] * 3])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    reading, near, data = (number(value, 32) for value in (0, 4 - cache, 1))
    builder.call(function, [builder.inttoptr(address, pointer), reading, near, data])


def _copy(lanes: int) -> Any:
    @instruction("void", "int64", "int64")
    def copy(builder: Any, source: Any, target: Any) -> None:
        store(builder, load(builder, source, ir.VectorType(ir.FloatType(), lanes)), target)

    return copy


copy_vector = _copy(LANES)  # (source, target): LANES numbers from one address to another
copy_rows = _copy(ROWS)  # the same with ROWS numbers


@instruction("float32", "int64")
def get(builder: Any, address: Any) -> Any:
    """Return the float32 at an address."""
    return builder.load(builder.inttoptr(address, ir.FloatType().as_pointer()))


@instruction("void", "int64", "float32")
def put(builder: Any, address: Any, value: Any) -> None:
    """Store a float32 at an address."""
    builder.store(value, builder.inttoptr(address, ir.FloatType().as_pointer()))


@instruction("int32", "int64")
def get_half(builder: Any, address: Any) -> Any:
    """Return the 16 bits at an address."""
    found = builder.load(builder.inttoptr(address, ir.IntType(16).as_pointer()))
    return builder.zext(found, ir.IntType(32))


@instruction("void", "int64", "int32")
def put_bits(builder: Any, address: Any, bits: Any) -> None:
    """Store a word at an address."""
    builder.store(bits, builder.inttoptr(address, ir.IntType(32).as_pointer()))


def put_pairs_of(lanes: int) -> Any:
    """Make the move (first, second, target) of two rows of `lanes` 16-bit numbers to one row of pairs."""

    @instruction("void", "int64", "int64", "int64")
    def put_pairs(builder: Any, first: Any, second: Any, target: Any) -> None:
        store(builder, pairs_of(builder, first, second, lanes), target)

    return put_pairs


@instruction("void", "int64")
def prefetch_line(builder: Any, address: Any) -> None:
    """Prefetch a line into the L2 cache; any address is allowed."""
    prefetch(builder, address, 2)


def _transpose(count: int, row_of: Any) -> Any:
    """Make the transposition of `count` rows of LANES words; row_of(builder, source, row, i) loads row i.

    Each round interleaves the first half of the rows with the second; after log2(count) rounds the words of a
    column are contiguous.
    """

    @instruction("void", *["int64"] * 4)
    def transpose(builder: Any, source: Any, row_source: Any, target: Any, row_target: Any) -> None:
        lanes = ir.VectorType(ir.IntType(32), LANES)
        between = [i // 2 + LANES * (i % 2) for i in range(LANES)]
        masks = [ir.Constant(lanes, [i + shift for i in between]) for shift in (0, LANES // 2)]
        rows = [row_of(builder, source, row_source, i) for i in range(count)]
        for _ in range(count.bit_length() - 1):
            half = count // 2
            rows = [builder.shuffle_vector(rows[i // 2], rows[i // 2 + half], masks[i % 2]) for i in range(count)]
        size = min(count, LANES)
        for flat in range(0, count * LANES, size):
            first = flat % LANES
            picked = ir.Constant(ir.VectorType(ir.IntType(32), size), list(range(first, first + size)))
            part = builder.shuffle_vector(rows[flat // LANES], rows[flat // LANES], picked)
            column, offset = divmod(flat, count)
            store(builder, part, place(builder, target, builder.mul(number(column), row_target), number(offset)))

    return transpose


def _row(builder: Any, source: Any, row: Any, i: int) -> Any:
    return load(builder, place(builder, source, builder.mul(number(i), row)))


def _row_of_halves(builder: Any, source: Any, row: Any, i: int) -> Any:
    return load(builder, place(builder, source, builder.mul(number(i), row), size=2), align=2)


def _row_of_pairs(builder: Any, source: Any, row: Any, i: int) -> Any:
    first, second = (place(builder, source, builder.mul(number(2 * i + j), row), size=2) for j in (0, 1))
    return pairs_of(builder, first, second, LANES)


# (source, its row, target, its row): addresses, and elements from row to row
transpose_square = _transpose(LANES, _row)  # LANES rows of LANES numbers
transpose_tile = _transpose(ROWS, _row)  # ROWS rows of LANES numbers, which become LANES rows of ROWS
# The same for 16-bit numbers, to words of two that follow each other
transpose_pairs = _transpose(LANES, _row_of_halves)  # in a row
transpose_columns = _transpose(LANES, _row_of_pairs)  # in a column: 2 LANES rows of LANES numbers
