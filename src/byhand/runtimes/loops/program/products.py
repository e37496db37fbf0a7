"""Ways to multiply: how operands of products are rounded and stored, and the kernel that multiplies them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from byhand.formats.registry import Format


@dataclass(frozen=True, eq=False)
class Copy:
    """How rounded operands of products are stored.

    format   of an element
    matrix   a view of memory (`machine/views.py`) with such elements
    rounded  a float32's bits -> those of the nearest number, as stored
    """

    format: Format
    matrix: Any
    rounded: Any


@dataclass(frozen=True)
class Products:
    """A way to multiply operands of a format; the sums are float32.

    how     description
    copy    of the operands; None: float32 is read in place
    kernel  of register tiles for such operands; "": the one for float32
    here    () -> whether this is fast on this processor, in this process
    """

    how: str = ""
    copy: Copy | None = None
    kernel: str = ""
    here: Callable[[], bool] = lambda: True


UNROUNDED = Products()
