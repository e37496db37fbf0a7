"""What compiled loops need from below: how they are compiled, views of the arena, BLAS by address, barriers.

Addresses (of BLAS, of the operating system's yield) are passed in as numbers when a plan runs. Nothing of one
process is baked into the compiled code, so that it can be kept on disk and the BLAS be exchanged.

Only a compiling process (`compiler.py`) sees Numba's functions here. In all others a kernel is the plain Python
function that it is compiled from: it has a name and parameters, and is never called.
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from llvmlite import ir

COMPILING = os.environ.get("BYHAND_COMPILING") == "1"
X86 = platform.machine().lower() in ("x86_64", "amd64", "x86")

numba: Any = import_module("numba") if COMPILING else None
types: Any = import_module("numba.types") if COMPILING else None
cgutils: Any = import_module("numba.core.cgutils") if COMPILING else None

# Everything of fast-math but "no NaN" and "no infinity": a loss that explodes has to stay visible.
FASTMATH = {"reassoc", "contract", "arcp", "nsz", "afn"}


def compiled(function: Callable[..., Any]) -> Any:
    """Make a function one that compiled loops call. It allocates nothing, so no array counts its references."""
    if not COMPILING:
        return function
    return numba.njit(
        nogil=True, fastmath=FASTMATH, error_model="numpy", boundscheck=False, _nrt=False, no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)  # fmt: skip


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a function of types, which returns a signature and what writes the instructions, callable from loops."""
    return import_module("numba.extending").intrinsic(function) if COMPILING else function


def yield_address() -> int:
    """Return the address of the system call that gives the processor to another thread."""
    if sys.platform == "win32":
        function = ctypes.WinDLL("kernel32").SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value or 0


_BYTES = ir.IntType(8).as_pointer()


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _BYTES)


def view_of(context: Any, builder: Any, kind: Any, data: Any, shape: list[Any]) -> Any:
    """Return a row-major array over memory that somebody else keeps alive."""
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
    """Return n numbers from `start` on. Loops index such views: there the compiler knows that no index wraps."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _start(context, builder, memory, args[0], args[1])
        return view_of(context, builder, signature.return_type, data, [args[2]])

    return types.Array(memory.dtype, 1, "C")(memory, types.int64, types.int64), codegen


def _matrix(dtype: str) -> Any:
    @intrinsic
    def rows(typingctx: Any, memory: Any, start: Any, rows: Any, width: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = _start(context, builder, memory, args[0], args[1])
            return view_of(context, builder, signature.return_type, data, [args[2], args[3]])

        kind = types.Array(getattr(types, dtype) if dtype else memory.dtype, 2, "C")
        return kind(memory, types.int64, types.int64, types.int64), codegen

    return rows


# (memory, start, rows, width): the rows (rows, width) from `start` on, counted in the memory's own elements
matrix = _matrix("")
matrix_of_bits = _matrix("uint32")  # each number as its bits
matrix_of_halves = _matrix("uint16")  # twice as many numbers, 16 bits each


@intrinsic
def address_of(typingctx: Any, memory: Any) -> Any:
    """Return the address of an array's first element."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(context.make_array(memory)(context, builder, args[0]).data, ir.IntType(64))

    return types.int64(memory), codegen


@intrinsic
def _sgemm(typingctx: Any, address: Any, ta: Any, tb: Any, m: Any, n: Any, k: Any, alpha: Any, a: Any, lda: Any,
           b: Any, ldb: Any, beta: Any, c: Any, ldc: Any) -> Any:  # fmt: skip
    """Call the Fortran SGEMM at `address`; every number goes by its address, so each gets a place on the stack."""
    signature = types.void(
        types.int64, types.uint8, types.uint8, types.int32, types.int32, types.int32, types.float32, types.int64,
        types.int32, types.int64, types.int32, types.float32, types.int64, types.int32,
    )  # fmt: skip

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, *values = args
        matrices = {6, 8, 11}  # a, b, c are addresses already
        pointers = [
            _pointer(builder, value)
            if i in matrices
            else builder.bitcast(cgutils.alloca_once_value(builder, value), _BYTES)
            for i, value in enumerate(values)
        ]
        kind = ir.FunctionType(ir.VoidType(), [_BYTES] * len(pointers))
        builder.call(builder.inttoptr(address, kind.as_pointer()), pointers)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _call(typingctx: Any, address: Any) -> Any:
    """Call the function without arguments at `address`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def _atomic_add(typingctx: Any, address: Any, value: Any) -> Any:
    """Add to the int64 at `address`; every thread sees all that was written before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, args[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _atomic_load(typingctx: Any, address: Any) -> Any:
    """Read the int64 at `address`, and after it see all that was written before it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(types.int64), codegen


def _control_word(builder: Any, instruction: str, slot: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [_BYTES])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{instruction}")
    builder.call(function, [builder.bitcast(slot, _BYTES)])


@intrinsic
def flush_denormals(typingctx: Any) -> Any:
    """Take numbers below 1.2e-38 for 0 in this thread, read or written; return the mode before.

    The logits of tokens that never occur fall for as long as training lasts, until their probabilities are denormal.
    An x86 processor computes with such numbers many times slower; on others this does nothing.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        slot = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(32), 0))
        if X86:
            _control_word(builder, "stmxcsr", slot)
            before = builder.load(slot)
            builder.store(builder.or_(before, ir.Constant(ir.IntType(32), 0x8040)), slot)
            _control_word(builder, "ldmxcsr", slot)
            return before
        return builder.load(slot)

    return types.int32(), codegen


@intrinsic
def restore_denormals(typingctx: Any, before: Any) -> Any:
    """Set the mode that `flush_denormals` returned."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if X86:
            _control_word(builder, "ldmxcsr", cgutils.alloca_once_value(builder, args[0]))
        return context.get_dummy_value()

    return types.void(types.int32), codegen


@intrinsic
def float_of_bits(typingctx: Any, bits: Any) -> Any:
    """Return the float32 with this bit pattern."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


N, T = np.uint8(ord("N")), np.uint8(ord("T"))

# 0 and 1 as arguments of compiled functions: for a plain constant Numba compiles the function once more.
ZERO, ONE = np.int64(0), np.int64(1)


@compiled
def sgemm(blas, memory, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, alpha, beta):
    """C (m, n) = alpha op(A) op(B) + beta C, all row-major at offsets of `memory`; ta and tb transpose.

    BLAS is column-major: it sees every matrix transposed, so it is asked for C^T = op(B)^T op(A)^T.
    """
    base = address_of(memory)
    _sgemm(
        blas, T if tb else N, T if ta else N, np.int32(n), np.int32(m), np.int32(k), np.float32(alpha), base + 4 * b,
        np.int32(ldb), base + 4 * a, np.int32(lda), np.float32(beta), base + 4 * c, np.int32(ldc),
    )  # fmt: skip


LATE, STOPPED = 2, 3  # signals: long waits at barriers, and that the threads stop after this token
SPINS, YIELDS = 20_000, 8  # some fifty microseconds; more than the work between two barriers lets a thread wait


@compiled
def barrier(signals, own, shares, yield_to):
    """Wait until every share has come here.

    signals[1] counts all arrivals, signals[own] this share's, which says what to wait for; signals[0] != 0 means that
    a share has given up; signals[LATE] counts the waits that were long: somebody else uses a core.
    """
    base = address_of(signals)
    signals[own] += 1
    wanted = signals[own] * shares
    _atomic_add(base + 8, 1)
    spins = 0
    while _atomic_load(base + 8) < wanted and _atomic_load(base) == 0:
        spins += 1
        if spins > SPINS:
            if spins == SPINS + YIELDS:
                _atomic_add(base + 8 * LATE, 1)
            _call(yield_to)


@intrinsic
def word(typingctx: Any, address: Any, index: Any) -> Any:
    """Return the int64 that lies `index` int64 behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.add(args[0], builder.mul(args[1], ir.Constant(ir.IntType(64), 8)))
        return builder.load(builder.inttoptr(place, ir.IntType(64).as_pointer()))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def put_word(typingctx: Any, address: Any, index: Any, value: Any) -> Any:
    """Store an int64 there."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.add(args[0], builder.mul(args[1], ir.Constant(ir.IntType(64), 8)))
        builder.store(args[2], builder.inttoptr(place, ir.IntType(64).as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def run_at(typingctx: Any, address: Any, row: Any, resources: Any) -> Any:
    """Call a kernel's way in and return its status, 0 if all went well (see `machine_code.callable_at`)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide, status = ir.IntType(64), ir.IntType(32)
        kind = ir.FunctionType(status, [_BYTES.as_pointer(), _BYTES.as_pointer(), wide, wide])
        slots = [cgutils.alloca_once_value(builder, ir.Constant(_BYTES, None)) for _ in range(2)]
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), [*slots, args[1], args[2]])

    return types.int32(types.int64, types.int64, types.int64), codegen
