"""What compiled loops need from below: how they are compiled and cached, BLAS by address, barriers.

Addresses (of BLAS, of the operating system's yield) are passed in as numbers when a plan runs. Nothing of one
process is baked into the compiled code, so that it can be kept on disk and the BLAS be exchanged.
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numba.core.config
import numba.extending
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features

from byhand.runtimes.loops.processor import cpu_features

# Everything of fast-math but "no NaN" and "no infinity": a loss that explodes has to stay visible.
FASTMATH = {"reassoc", "contract", "arcp", "nsz", "afn"}


def cache_folder() -> Path:
    """Return the folder of compiled code: one for each state of the compiled sources, where the user may write.

    Numba notices when a function's own file changed, but not when a function that it calls did; the digest does.
    """
    room = Path(__file__).parent
    sources = hashlib.sha256()
    for path in sorted([room / "native.py", room / "replay.py", *(room / "kernels").glob("*.py")]):
        sources.update(path.read_bytes())
    name = f"loops-{sources.hexdigest()[:16]}"
    for base in _cache_bases():
        try:
            (base / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(base / name, os.W_OK):
            return base / name
    return Path(tempfile.mkdtemp(prefix="byhand-"))


def _cache_bases() -> Iterator[Path]:
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"])
    if sys.platform == "win32":
        yield Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "byhand"
    elif sys.platform == "darwin":
        yield Path.home() / "Library/Caches/byhand"
    else:
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "byhand"


CACHE_FOLDER = cache_folder()
X86 = platform.machine().lower() in ("x86_64", "amd64", "x86")
_numba_config: Any = numba.core.config

# LLVM keeps to vectors of 256 bits, since early processors with AVX-512 ran slower with the wider ones. Loops full of
# arithmetic (GELU) take a third less time with 512. It has to be said before Numba compiles anything.
if _numba_config.CPU_FEATURES is None and "avx512f" in cpu_features():
    _numba_config.CPU_FEATURES = f"{get_host_cpu_features()},-prefer-256-bit"


def compiled(function: Callable[..., Any]) -> Any:
    """Compile without the GIL and keep the machine code on disk."""
    before = _numba_config.CACHE_DIR
    _numba_config.CACHE_DIR = str(CACHE_FOLDER)
    try:
        return numba.njit(nogil=True, cache=True, fastmath=FASTMATH, error_model="numpy", boundscheck=False)(function)
    finally:
        _numba_config.CACHE_DIR = before


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make a function of types, which returns a signature and what writes the instructions, callable from loops."""
    return numba.extending.intrinsic(function)


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
    base = memory.ctypes.data
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
    base = signals.ctypes.data
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


@compiled
def vector(memory, start, n):
    """Return n numbers from `start` on. Loops index such views: there the compiler knows that no index wraps."""
    return memory[start : start + n]


@compiled
def matrix(memory, start, rows, width):
    """Return the rows (rows, width) from `start` on."""
    return memory[start : start + rows * width].reshape((rows, width))
