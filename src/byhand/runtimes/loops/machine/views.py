"""Views of the arena for compiled loops: rows and matrices over memory, addresses, numbers as bits."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from llvmlite import ir

from byhand.runtimes.loops.machine.native import instruction, intrinsic, place_of_word, types


def view_of(context: Any, builder: Any, kind: Any, data: Any, shape: list[Any]) -> Any:
    """Return a row-major array over memory that the caller keeps alive."""
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [size]
    for extent in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    array = context.make_array(kind)(context, builder)
    data = builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer())
    import_module("numba.np.arrayobj").populate_array(
        array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None
    )
    return array._getvalue()


def _start(context: Any, builder: Any, kind: Any, memory: Any, offset: Any) -> Any:
    """Return a pointer to the element of `memory` at this offset."""
    return builder.gep(context.make_array(kind)(context, builder, memory).data, [offset])


@intrinsic
def vector(typingctx: Any, memory: Any, start: Any, n: Any) -> Any:
    """Return n numbers from `start` on. Loops index such views, so the compiler knows that no index wraps."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _start(context, builder, memory, args[0], args[1])
        return view_of(context, builder, signature.return_type, data, [args[2]])

    return types.Array(memory.dtype, 1, "C")(memory, types.int64, types.int64), codegen


def matrix_of(dtype: str) -> Any:
    """Make the view (memory, start, rows, width) of a type, "" for the memory's own; `start` counts its elements."""

    @intrinsic
    def rows(typingctx: Any, memory: Any, start: Any, rows: Any, width: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = _start(context, builder, memory, args[0], args[1])
            return view_of(context, builder, signature.return_type, data, [args[2], args[3]])

        kind = types.Array(getattr(types, dtype) if dtype else memory.dtype, 2, "C")
        return kind(memory, types.int64, types.int64, types.int64), codegen

    return rows


matrix = matrix_of("")
matrix_of_bits = matrix_of("uint32")  # each number as its bits


def _in_table(dtype: str) -> Any:
    @intrinsic
    def array(typingctx: Any, table: Any, i: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind, (table, i) = signature.return_type, args
            first = builder.add(i, i)
            places = first, builder.add(first, ir.Constant(ir.IntType(64), 1))
            address, length = (builder.load(place_of_word(builder, table, place)) for place in places)
            data = builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer())
            return view_of(context, builder, kind, data, [length])

        return types.Array(getattr(types, dtype), 1, "C")(types.int64, types.int64), codegen

    return array


# (table, i): array i of a table of arrays outside the arena, given by address and length
bytes_in = _in_table("uint8")
ints_in = _in_table("int32")
longs_in = _in_table("int64")


@intrinsic
def address_of(typingctx: Any, memory: Any) -> Any:
    """Return the address of an array's first element."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(context.make_array(memory)(context, builder, args[0]).data, ir.IntType(64))

    return types.int64(memory), codegen


@instruction("float32", "int32")
def float_of_bits(builder: Any, bits: Any) -> Any:
    """Return the float32 with this bit pattern."""
    return builder.bitcast(bits, ir.FloatType())
