"""Kernels of matrix products by a BLAS, called by its address: float32, and bfloat16 with sums in float32."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from byhand.runtimes.loops.machine.kernel import kernel
from byhand.runtimes.loops.machine.native import cgutils, compiled, intrinsic, types
from byhand.runtimes.loops.machine.views import address_of

F = np.float32
N, T = np.uint8(ord("N")), np.uint8(ord("T"))
_BYTES = ir.IntType(8).as_pointer()


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
            builder.inttoptr(value, _BYTES)
            if i in matrices
            else builder.bitcast(cgutils.alloca_once_value(builder, value), _BYTES)
            for i, value in enumerate(values)
        ]
        kind = ir.FunctionType(ir.VoidType(), [_BYTES] * len(pointers))
        builder.call(builder.inttoptr(address, kind.as_pointer()), pointers)
        return context.get_dummy_value()

    return signature, codegen


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


@kernel(rows="m", moves={"a": "lda", "c": "ldc"})
def gemm(memory, blas, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, adds):
    """C = op(A) op(B), added to C if `adds`."""
    sgemm(blas[0], memory, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, F(1.0), F(1.0) if adds else F(0.0))


@kernel(rows="m", moves={"a": "lda", "c": "ldc"})
def gemm_bfloat16(memory, blas, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, adds):
    """C = op(A) op(B), added to C if `adds`: A and B are bfloat16, C and all sums are float32."""
    sgemm(blas[2], memory, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, F(1.0), F(1.0) if adds else F(0.0))
