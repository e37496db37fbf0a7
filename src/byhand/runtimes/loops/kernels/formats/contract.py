"""The interface of a number format for loops that multiply weights or operands stored in it.

Kernels are templates over these records: `linear/row_product.py` over PANELS, `products/rounding.py` over COPIES.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.formats.registry import FLOAT32, Format
from byhand.runtimes.loops.kernels.vector.vector_moves import broadcast, multiply_add, number, place
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.program.products import UNROUNDED, Copy, Products


def padded_to(block: int) -> Any:
    """Make `Panels.left` for unquantised rows: pads the last block of each with zeros."""

    @compiled
    def padded(memory, words, x, rows, inner, scratch):
        row = (inner + block - 1) // block * block
        if row == inner:
            return x, inner
        for b in range(rows):
            for i in range(row):
                memory[scratch + b * row + i] = memory[x + b * inner + i] if i < inner else np.float32(0)
        return scratch, row

    return padded


@dataclass(frozen=True, kw_only=True)
class Panels:
    """Weights in panels of LANES columns. A panel is a sequence of blocks, each with `block` numbers of every column.

    block      numbers of a column in a block
    words      32-bit words of a block
    number_at  (words, at, i, lane) -> element i of a column in the block at `at`, as float32
    put        (words, source, down, count, at, lane): write a column into the block at `at`, rounded by
               `Format.rounded`: `count` float32 from `source`, `down` apart, then zeros
    multiply   (builder, sums, lefts, rights): generate the code that adds a block's products to `sums`, slots of
               vectors by row and panel; `lefts` and `rights` are the addresses of rows and panels
    sums       registers that `multiply` needs for each slot
    left       (memory, words, x, rows, inner, scratch) -> offset and stride in words of rows of x in the form that
               `multiply` reads; None: as they are
    left_words  if `left` is given, 32-bit words of a row for each block
    """

    block: int
    words: int
    number_at: Any
    put: Any
    multiply: Callable[..., None]
    sums: int = 1
    left: Any = None
    left_words: int = 0

    def __post_init__(self) -> None:
        if self.left is None:
            object.__setattr__(self, "left", padded_to(self.block))
            object.__setattr__(self, "left_words", self.block)

    def size(self, inner: int) -> int:
        """Return the words of a panel with `inner` numbers in each column."""
        return -(-inner // self.block) * self.words


def of_vectors(vectors: Callable[..., list[Any]]) -> Callable[..., None]:
    """Make `multiply` from a function (builder, address) -> a block as vectors over the columns."""

    def multiply(builder: Any, sums: list[list[Any]], lefts: list[Any], rights: list[Any]) -> None:
        panels = [vectors(builder, right) for right in rights]
        for k in range(len(panels[0])):
            for left, row in zip(lefts, sums, strict=True):
                x = broadcast(builder, place(builder, left, number(k)))
                for slot, panel in zip(row, panels, strict=True):
                    builder.store(multiply_add(builder, x, panel[k], builder.load(slot)), slot)

    return multiply


PANELS: dict[Format, Panels] = {}
PRODUCTS: dict[Format, list[Products]] = {FLOAT32: [UNROUNDED]}  # fastest first; the last one works everywhere
COPIES: list[Copy] = []


def number_of(copy: Copy) -> int:
    """Return the kernels' number for a kind of copy; 0 for none."""
    return 1 + COPIES.index(copy)


def kernel_of(template: str, format: Format) -> str:
    """Return the name of a template's kernel for a format."""
    return template if format.native else f"{template}_{format.name}"


def products_in(format: Format) -> Products:
    """Return the fastest way to multiply operands of a format in this process."""
    return next(way for way in PRODUCTS[format] if way.here())
