"""Kernel of matrix products by a BLAS, called by its address."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import cgutils, compiled, instruction
from byhand.runtimes.loops.machine.views import address_of

F = np.float32
N, T = np.uint8(ord("N")), np.uint8(ord("T"))
_BYTES = ir.IntType(8).as_pointer()


@instruction(
    "void", "int64", "uint8", "uint8", "int32", "int32", "int32", "float32", "int64", "int32", "int64", "int32",
    "float32", "int64", "int32",
)  # fmt: skip
def _sgemm(builder: Any, address: Any, ta: Any, tb: Any, m: Any, n: Any, k: Any, alpha: Any, a: Any, lda: Any,
           b: Any, ldb: Any, beta: Any, c: Any, ldc: Any) -> None:  # fmt: skip
    """Call the Fortran SGEMM at `address`; it takes all numbers by address, so they go onto the stack."""
    values = (ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
    pointers = [
        builder.inttoptr(value, _BYTES)
        if value in (a, b, c)  # addresses already
        else builder.bitcast(cgutils.alloca_once_value(builder, value), _BYTES)
        for value in values
    ]
    kind = ir.FunctionType(ir.VoidType(), [_BYTES] * len(pointers))
    builder.call(builder.inttoptr(address, kind.as_pointer()), pointers)


@compiled
def sgemm(address, memory, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, adds):
    """C (m, n) = op(A) op(B), added to C if `adds`, all row-major at offsets of `memory`; ta and tb transpose.

    BLAS is column-major and sees every matrix transposed, so it computes C^T = op(B)^T op(A)^T.
    """
    base = address_of(memory)
    _sgemm(
        address, T if tb else N, T if ta else N, np.int32(n), np.int32(m), np.int32(k), F(1.0), base + 4 * b,
        np.int32(ldb), base + 4 * a, np.int32(lda), F(1.0) if adds else F(0.0), base + 4 * c, np.int32(ldc),
    )  # fmt: skip


@kernel(rows="m", moves={"a": "lda", "c": "ldc"})
def gemm(memory, blas, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, adds):
    """C = op(A) op(B), added to C if `adds`."""
    sgemm(blas[0], memory, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, adds)
