"""The interface of a kind of tile for the loops of a product: its size, its steps, its packing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.runtimes.loops.kernels.vector.vector_moves import LANES
from byhand.runtimes.loops.machine.native import compiled

BLOCK = 160 * 1024  # words of B in a block: 640 KB of the L2 cache
DEPTH = 2048  # words: the longest sum of one pass


@compiled
def nothing():
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Register tiles of one kind. In a step, a tile reads some terms of the sum from each row and each column.

    rows     of a tile
    vectors  its greatest width
    numbers  of a step
    words    of a step: numbers narrower than float32 share one
    put      writes a tile of C (`register_tile.put_tile`; all strides in words)
    left     (base, a, row, transposed, first, count, i, rows, new, packed): `tiled_gemm.left_rows`
    right    (base, b, row, transposed, first, count, column, width, out): packs columns of op(B) as panels
    in_place  the first tiles of a block read B in place and pack it, and A if it is transposed
    needs    processor features (`Kernel.needs`)
    begin, end  called before a kernel's first tile and after its last
    """

    rows: int
    vectors: int
    numbers: int = 1
    words: int = 1
    put: Any
    left: Any
    right: Any
    in_place: bool = False
    needs: tuple[str, ...] = ()
    begin: Any = nothing
    end: Any = nothing

    @property
    def widest(self) -> int:
        """The columns of the widest tile."""
        return self.vectors * LANES

    @property
    def depth(self) -> int:
        """The longest sum of one pass, in numbers."""
        return DEPTH // self.words * self.numbers

    def deep(self, count: int) -> int:
        """Return the words of `count` numbers of a sum, in whole steps."""
        return -(-count // self.numbers) * self.words

    def packs_left(self, k: int, ta: bool) -> bool:
        """Return whether all of A is packed: if it is transposed, or its rows are not whole steps."""
        return ta or k % self.numbers != 0

    def scratch(self, m: int, n: int, k: int, ta: bool, tb: bool) -> int:
        """Return the float32 of scratch that a product needs."""
        if not self.packs_left(k, ta):
            packed = 1
        else:
            packed = n if self.in_place and computes_transposed(m, n, k, ta, tb) else m
        rows = -(-packed // self.rows) * self.rows
        depths = {self.deep(d) for d in (min(k, self.depth), k % self.depth or self.depth)}
        return max((block_columns(d, self.widest) + rows) * d for d in depths) + 2 * self.rows * self.widest


def block_columns(deep: int, widest: int) -> int:
    """Return the number of columns of B in a block, `deep` words each, in whole tiles."""
    return max(1, BLOCK // (deep * widest)) * widest


def computes_transposed(m: int, n: int, k: int, ta: int, tb: int) -> bool:
    """Return whether to compute C^T = B^T A instead: a packed left side is read again for each block."""
    return ta and not tb and m > n and m * min(k, DEPTH) > BLOCK  # pyright: ignore[reportReturnType]


TILES: dict[str, Tiles] = {}  # by the kernel that multiplies with them
