"""What loops need of a number format: to read weights that are kept in it, or to multiply operands that are.

Kernels are templates over these records: `linear/row_product.py` over PACKED, `products/` over OPERANDS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from byhand.errors import install
from byhand.formats.registry import Format
from byhand.runtimes.loops.machine.blas import Blas
from byhand.runtimes.loops.machine.native import compiled
from byhand.runtimes.loops.machine.processor import cpu_features


@compiled
def as_many(inner):
    """Return as many words as numbers."""
    return inner


@dataclass(frozen=True)
class Packed:
    """Weights in groups of columns; a group is a row of 32-bit words.

    loads   for each column of a group (1, 2 or 4) a function (row, i, inner) -> its number i as float32
    put     (row, i, inner, words, at, across, down, count): write number i of `count` columns, and what follows it up
            to i + step, rounded as `Format.rounded` does; the first lies at `at`, as float32, the next number `down`
            behind it, the next column `across`
    length  inner -> words of a row
    step    how many numbers `put` writes of a column
    """

    loads: tuple[Any, ...]
    put: Any
    length: Any = as_many
    step: int = 1


@dataclass(frozen=True)
class Operands:
    """Operands of products whose sums are float32.

    matrix    a view of memory (`machine/views.py`) with such elements
    rounded   a float32's bits -> the bits of the nearest number
    gemm      what a BLAS calls the product, with SGEMM's arguments
    features  the processor's, of which one makes it fast, each with its usual name
    """

    matrix: Any
    rounded: Any
    gemm: str
    features: Mapping[str, str]


PACKED: dict[Format, Packed] = {}
OPERANDS: dict[Format, Operands] = {}


def number_of(format: Format) -> int:
    """Return the number by which kernels know a format of operands; 0: products read float32 where it lies."""
    return 0 if format.native else 1 + list(OPERANDS).index(format)


def kernel_of(template: str, format: Format) -> str:
    """Return the name of a template's kernel for a format."""
    return template if format.native else f"{template}_{format.name}"


def lack(format: Format, blas: Blas) -> str:
    """Return a line that says why this machine has no fast products of a format; "" if it has."""
    if format.native:
        return ""
    kind = OPERANDS[format]
    if not kind.features.keys() & set(cpu_features()):
        needs = " or ".join(kind.features.values())
        return f"this processor has no products of {format.name} ({needs}). Use --dtype float32."
    if not blas.product(kind.gemm):
        return f"{blas.library} has no product of {format.name}. Use {install('mkl')}, or --dtype float32."
    return ""
