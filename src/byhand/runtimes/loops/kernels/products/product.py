"""The call of a matrix product: register tiles for the operands' format, or a BLAS."""

from __future__ import annotations

from byhand.engine import Node
from byhand.runtimes.loops.kernels.products.tiles import TILES
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Operand, Place, buffer_at

Shape = tuple[int, int, int, bool, bool]  # m, n, k, A transposed, B transposed


def product_operands(a: Operand, b: Operand, c: Operand, shape: Shape, adds: Operand = 0) -> dict[str, Operand]:
    """Return the operands of C (m, n) = op(A) op(B) common to all product kernels, for contiguous matrices."""
    m, n, k, ta, tb = shape
    return {
        "a": a, "b": b, "c": c, "m": m, "n": n, "k": k, "lda": m if ta else k, "ldb": k if tb else n, "ldc": n,
        "ta": int(ta), "tb": int(tb), "adds": adds,
    }  # fmt: skip


def emit_product(
    builder: Builder, node: Node, a: Place, b: Place, c: Place, rows: int, inner: int, *, ta: bool = False,
    tb: bool = False, adds: Operand = 0, start: Place | int = 0, bias: Place | int = 0,
) -> None:  # fmt: skip
    """Append the call for C = start + bias + op(A) op(B) (+ C, if `adds`) with `rows` rows, summed over `inner`.

    A and B come from `Builder.operand`; ta and tb: stored transposed. A start or a bias needs
    `Builder.begins_inside`.
    """
    width = buffer_at(c).width
    operands = product_operands(a, b, c, (rows, width, inner, ta, tb), adds)
    kernel, touched = builder.product_kernel, None
    if builder.begins_inside:
        touched = 4 * (rows * inner + inner * width + rows * width * (2 if start else 1))
        scratch = builder.shared_scratch(TILES[kernel].scratch(rows, width, inner, ta, tb))
        operands |= {"start": start, "bias": bias, "scratch": scratch}
    builder.emit(kernel, node, 2 * rows * width * inner, touched, **operands)
