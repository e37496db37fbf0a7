"""Register tiles of pairs of bfloat16, two terms of a sum per lane: AVX512-BF16.

Equation    each lane: sum + a[2 p] b[2 p] + a[2 p + 1] b[2 p + 1]
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from byhand.runtimes.loops.kernels.products.packing import VECTORS
from byhand.runtimes.loops.kernels.products.pair_packing import pack_pairs_of, pack_right_of
from byhand.runtimes.loops.kernels.products.register_tile import put_tile_of, register_tile_of
from byhand.runtimes.loops.kernels.products.tiled_gemm import tiled_gemm_of
from byhand.runtimes.loops.kernels.products.tiles import Tiles
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES, ROWS, VECTOR
from byhand.runtimes.loops.machine.native import ZERO, cgutils, compiled
from byhand.runtimes.loops.machine.processor import PAIR_FEATURES


class _BFloat(ir.HalfType):
    """LLVM's bfloat, which llvmlite lacks; not for constants."""

    def __str__(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]  (of one literal there)
        return "bfloat"


_BFloat._create_instance()
PAIRS = ir.VectorType(_BFloat(), 2 * LANES)


def add_products(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return z plus the two products of each lane."""
    kind = ir.FunctionType(VECTOR, [VECTOR, PAIRS, PAIRS])
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * LANES}"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [z, builder.bitcast(x, PAIRS), builder.bitcast(y, PAIRS)])


pack_panel = pack_pairs_of(ROWS)


@compiled
def left_rows(base, a, row, transposed, first, count, i, rows, new, packed, apart):
    """Locate rows of A from i on; see `tiled_gemm.left_rows`."""
    if not apart and rows == ROWS:
        at = a + (i * row + first) // 2
        return at, row // 2, 1, ZERO, at + ROWS * row // 2, ROWS
    pairs = (count + 1) // 2
    if new:
        source = base + 4 * a + 2 * (first * row + i if transposed else i * row + first)
        pack_panel(base, source, row, not transposed, count, rows, ROWS, pairs, packed)
    return packed, 1, ROWS, ZERO, packed + ROWS * pairs, ROWS


tiled_gemm_of(
    "tiled_gemm_pairs",
    Tiles(
        rows=ROWS, vectors=VECTORS, numbers=2, put=put_tile_of(register_tile_of("_pairs", add_products)),
        left=left_rows, right=pack_right_of(VECTORS, 2, 1), needs=PAIR_FEATURES,
    ),
)  # fmt: skip
