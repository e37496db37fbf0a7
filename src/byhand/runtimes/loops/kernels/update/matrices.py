"""Updates of whole matrices: the calls of their kernels. Such a kernel's file registers itself here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from byhand.runtimes.loops.program.calls import Call, Operand


@dataclass(frozen=True)
class Matrix:
    """A matrix that is updated whole: its parameter, its shape, and the offsets of its arrays.

    places  of theta, of the gradient, and of each array of its state, by the names that the kernels give them
    common  further operands of every kernel: the shape, the stride from one row to the next (more than the columns if
            several matrices are packed in one array), the settings, what the threads share
    scratch where memory begins that only its thread uses, as much as the update's `scratch` says
    tiles   register tiles multiply, not BLAS
    """

    name: str
    rows: int
    columns: int
    places: Mapping[str, Operand]
    common: Mapping[str, Operand]
    scratch: int = 0
    tiles: bool = False


@dataclass(frozen=True)
class ByMatrix:
    """How an update is computed, matrix by matrix.

    scratch  (rows, columns, tiles) -> the float32 needed beside parameters and state
    calls    the calls that update a matrix
    """

    scratch: Callable[[int, int, bool], int]
    calls: Callable[[Matrix], list[Call]]


BY_MATRIX: dict[str, ByMatrix] = {}
"""By the name of the equation; other updates are computed element by element."""
