"""The call of a matrix product: register tiles, or a BLAS, for the operands' format."""

from __future__ import annotations

from byhand.engine import Node
from byhand.formats.registry import FORMATS
from byhand.runtimes.loops.kernels.formats.contract import kernel_of
from byhand.runtimes.loops.kernels.products.tiled_gemm import scratch_of
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Operand, Place, buffer_at


def emit_product(
    builder: Builder, node: Node, a: Place, b: Place, c: Place, rows: int, inner: int, *, ta: bool = False,
    tb: bool = False, adds: Operand = 0, start: Place | int = 0, bias: Place | int = 0,
) -> None:  # fmt: skip
    """Append the call for C = start + bias + op(A) op(B) (+ C, if `adds`): so many rows, sums over `inner`.

    A and B both come from `Builder.operand`, or neither; ta and tb: stored transposed. A start or a bias needs
    `Builder.begins_inside`.
    """
    left, right, width = buffer_at(a), buffer_at(b), buffer_at(c).width
    operands: dict[str, Operand] = {
        "a": a, "b": b, "c": c, "m": rows, "n": width, "k": inner, "lda": left.width, "ldb": right.width,
        "ldc": width, "ta": int(ta), "tb": int(tb), "adds": adds,
    }  # fmt: skip
    kernel = kernel_of("gemm", FORMATS[left.dtype])
    touched = None
    if builder.begins_inside:
        kernel = "tiled_gemm"
        touched = 4 * (rows * inner + inner * width + rows * width * (2 if start else 1))
        scratch = builder.shared_scratch(scratch_of(rows, width, inner, ta, tb))
        operands |= {"start": start, "bias": bias, "scratch": scratch}
    builder.emit(kernel, node, 2 * rows * width * inner, touched, **operands)
