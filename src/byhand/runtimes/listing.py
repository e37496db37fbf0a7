"""Listings: the calls of a plan as lines, with their costs and, after a timed run, their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Line:
    """One call, or the sum of all calls of one kind.

    ms, gflops, gb_per_s, share (of the step) and peak_share (of one core's measured peak) are None without times.
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


class Listing(NamedTuple):
    """The calls of one thread: a line for each call, and one for each kind of call.

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
