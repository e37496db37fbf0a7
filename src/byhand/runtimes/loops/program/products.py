"""Ways to multiply: how the operands of products are rounded and stored, and which kernel multiplies them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from byhand.formats.registry import Format


@dataclass(frozen=True, eq=False)
class Copy:
    """How numbers are stored that products read rounded.

    format   in which they lie
    matrix   a view of memory (`machine/views.py`) with such elements
    rounded  a float32's bits -> those of the nearest number, as it lies there
    """

    format: Format
    matrix: Any
    rounded: Any


@dataclass(frozen=True)
class Products:
    """A way to multiply operands of a format; the sums are float32.

    how     in words
    copy    of the operands; None: float32 is read where it lies
    kernel  of register tiles for such operands; "": what multiplies float32
    here    () -> whether this is a fast way on this processor, in this process
    """

    how: str = ""
    copy: Copy | None = None
    kernel: str = ""
    here: Callable[[], bool] = lambda: True


UNROUNDED = Products()
