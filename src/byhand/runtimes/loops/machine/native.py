"""Compilation of loops by Numba, and the instructions that the loop over a table uses on addresses.

Addresses (of BLAS, of the operating system's yield) are passed in as numbers when a plan runs. Compiled code
contains nothing specific to a process, so it can be kept on disk and the BLAS can be exchanged.

Only a compiling process (`compiler.py`) sees Numba's functions here. In all others a kernel is its plain Python
function, which has a name and parameters and is never called.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np
from llvmlite import ir

COMPILING = os.environ.get("BYHAND_COMPILING") == "1"
X86 = platform.machine().lower() in ("x86_64", "amd64", "x86")

numba: Any = import_module("numba") if COMPILING else None
types: Any = import_module("numba.types") if COMPILING else None
cgutils: Any = import_module("numba.core.cgutils") if COMPILING else None

# All of fast-math except "no NaN" and "no infinity": an exploding loss must stay visible.
FASTMATH = {"reassoc", "contract", "arcp", "nsz", "afn"}


# 0 and 1 as arguments of compiled functions: Numba would compile another version for a plain constant.
ZERO, ONE = np.int64(0), np.int64(1)


def compiled(function: Callable[..., Any]) -> Any:
    """Make a function callable from compiled loops. It allocates nothing, so arrays need no reference counts."""
    if not COMPILING:
        return function
    return numba.njit(
        nogil=True, fastmath=FASTMATH, error_model="numpy", boundscheck=False, _nrt=False, no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)  # fmt: skip


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a function of types, which returns a signature and a code generator, callable from loops."""
    return import_module("numba.extending").intrinsic(function) if COMPILING else function


def instruction(returns: str, *takes: str) -> Any:
    """Make a function (builder, *values) that generates LLVM instructions callable from compiled loops.

    returns, takes  names of Numba types; for "void" the function returns None
    """

    def decorate(write: Callable[..., Any]) -> Any:
        if not COMPILING:
            return write

        @wraps(write)
        def typed(*given: Any) -> Any:
            def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                value = write(builder, *args)
                return context.get_dummy_value() if value is None else value

            return getattr(types, returns)(*(getattr(types, name) for name in takes)), codegen

        return intrinsic(typed)

    return decorate


def waiting_addresses() -> tuple[int, int]:
    """Return the addresses of the functions that yield the processor, and that sleep for some microseconds."""
    if sys.platform == "win32":
        functions = (ctypes.WinDLL("kernel32").SwitchToThread,) * 2
    else:
        functions = ctypes.CDLL(None).sched_yield, ctypes.CDLL(None).usleep
    yields, sleeps = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
    return yields, sleeps


_BYTES = ir.IntType(8).as_pointer()


def _control_word(builder: Any, instruction: str, slot: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [_BYTES])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{instruction}")
    builder.call(function, [builder.bitcast(slot, _BYTES)])


@instruction("int32")
def flush_denormals(builder: Any) -> Any:
    """Treat numbers below 1.2e-38 as 0 in this thread, read or written; return the previous mode.

    The logits of tokens that never occur fall throughout training until their probabilities are denormal. x86
    processors are many times slower on such numbers; on others this does nothing.
    """
    slot = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(32), 0))
    if X86:
        _control_word(builder, "stmxcsr", slot)
        before = builder.load(slot)
        builder.store(builder.or_(before, ir.Constant(ir.IntType(32), 0x8040)), slot)
        _control_word(builder, "ldmxcsr", slot)
        return before
    return builder.load(slot)


@instruction("void", "int32")
def restore_denormals(builder: Any, before: Any) -> None:
    """Set the mode that `flush_denormals` returned."""
    if X86:
        _control_word(builder, "ldmxcsr", cgutils.alloca_once_value(builder, before))


def place_of_word(builder: Any, address: Any, index: Any) -> Any:
    """Return a pointer to the int64 at `index` from an address."""
    place = builder.add(address, builder.mul(index, ir.Constant(ir.IntType(64), 8)))
    return builder.inttoptr(place, ir.IntType(64).as_pointer())


@instruction("int64", "int64", "int64")
def word(builder: Any, address: Any, index: Any) -> Any:
    """Return the int64 there."""
    return builder.load(place_of_word(builder, address, index))


@instruction("void", "int64", "int64", "int64")
def put_word(builder: Any, address: Any, index: Any, value: Any) -> None:
    """Store an int64 there."""
    builder.store(value, place_of_word(builder, address, index))


@instruction("int32", "int64", "int64", "int64")
def run_at(builder: Any, address: Any, row: Any, resources: Any) -> Any:
    """Call the kernel at an address and return its status, 0 on success (see `machine_code.callable_at`)."""
    wide, status = ir.IntType(64), ir.IntType(32)
    kind = ir.FunctionType(status, [_BYTES.as_pointer(), _BYTES.as_pointer(), wide, wide])
    slots = [cgutils.alloca_once_value(builder, ir.Constant(_BYTES, None)) for _ in range(2)]
    return builder.call(builder.inttoptr(address, kind.as_pointer()), [*slots, row, resources])
