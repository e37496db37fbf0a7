"""Listing: the calls that a step or a token becomes in a runtime that has a plan, and where the time goes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Line:
    """One call, or several of one kind: what it is, what it costs, and, after a timed run, how long it takes.

    ms, gflops, gb_per_s, share (of the step) and peak_share (of one core's measured peak) are None before.
    """

    kernel: str
    equation: str
    name: str
    shapes: str
    calls: int
    flops: int
    bytes: int
    ms: float | None = None
    gflops: float | None = None
    gb_per_s: float | None = None
    share: float | None = None
    peak_share: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the line as plain values."""
        return asdict(self)


class Listing(NamedTuple):
    """What one thread runs: a line for each call, one for each kind of call, and where.

    ms    of all calls, if they were timed
    peak  GFLOP/s that one core reaches on products
    """

    what: str
    calls: list[Line]
    kinds: list[Line]
    ms: np.ndarray | None
    peak: float | None
    threads: int
    arena_bytes: int
    library: str
