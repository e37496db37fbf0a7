"""What loops need of a number format: to multiply with weights that are kept in it, or operands that are.

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
    """Make `Panels.left` of rows that are read as they are: zeros complete the last block of each."""

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
    """Weights in panels of LANES columns. A panel is blocks, one behind the other: so many numbers of each column.

    block      numbers of a column in a block
    words      32-bit words of a block
    number_at  (words, at, i, lane) -> number i of a column in the block at `at`, as float32
    put        (words, source, down, count, at, lane): write a column's numbers into the block at `at`, rounded as
               `Format.rounded` does; `count` of them lie at `source` as float32, `down` apart, the others are 0
    multiply   (builder, sums, lefts, rights): write what adds the products of a block to `sums`, slots of vectors by
               row and panel; the rows' and the panels' numbers lie at these addresses
    sums       registers that `multiply` needs for each slot
    left       (memory, words, x, rows, inner, scratch) -> where rows of x lie as `multiply` reads them, and how many
               words apart; None: as they are
    left_words  32-bit words of a row that meet a block, where that is not None
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
        """Return the words of a panel whose columns have so many numbers."""
        return -(-inner // self.block) * self.words


def of_vectors(vectors: Callable[..., list[Any]]) -> Callable[..., None]:
    """Make `multiply` of a function (builder, address) -> a block's numbers, a vector of all columns for each."""

    def multiply(builder: Any, sums: list[list[Any]], lefts: list[Any], rights: list[Any]) -> None:
        panels = [vectors(builder, right) for right in rights]
        for k in range(len(panels[0])):
            for left, row in zip(lefts, sums, strict=True):
                x = broadcast(builder, place(builder, left, number(k)))
                for slot, panel in zip(row, panels, strict=True):
                    builder.store(multiply_add(builder, x, panel[k], builder.load(slot)), slot)

    return multiply


PANELS: dict[Format, Panels] = {}
PRODUCTS: dict[Format, list[Products]] = {FLOAT32: [UNROUNDED]}  # the fastest first, the last one everywhere
COPIES: list[Copy] = []


def number_of(copy: Copy) -> int:
    """Return the number by which kernels know a kind of copy; 0 stands for none."""
    return 1 + COPIES.index(copy)


def kernel_of(template: str, format: Format) -> str:
    """Return the name of a template's kernel for a format."""
    return template if format.native else f"{template}_{format.name}"


def products_in(format: Format) -> Products:
    """Return the fastest way of this process to multiply operands of a format."""
    return next(way for way in PRODUCTS[format] if way.here())
