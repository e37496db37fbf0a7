"""Regions: where parameters, moments, averages and gradients lie in the one flat memory of a run.

    parameters | first moments | second moments | averages | gradients of each share | workspace of the plans

Muon's parameters come first and have no second moments; then those that decay, those of one learning rate together,
so that AdamW's update is a few ranges for each thread. Averages are there if the optimizer keeps some.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

from byhand.engine import Tensor

ALIGN = 16  # float32 in a cache line: every array begins on one


def padded(n: int) -> int:
    """Return n rounded up to whole cache lines."""
    return -(-n // ALIGN) * ALIGN


class AdamWRange(NamedTuple):
    """Parameters side by side that AdamW updates alike: from the first to before the last, and how."""

    first: int
    last: int
    is_matrix: bool
    scale: float


class Regions:
    """Offsets, in float32.

    Without `training` there are only the parameters and the workspace. The optimizer tells the parameters that decay
    where not everything does, those of Muon, and the learning rates.

    shapes     of the parameters, by name
    place      where each parameter lies in a region that holds one number for each
    size       of such a region
    parts      Muon's arrays, with the number of matrices in each
    scales     of the learning rate, where it is not 1
    averages   where they begin; 0: there are none
    workspace  where the plans' memory begins
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        shares: int,
        training: bool = True,
        optimizer: Any = None,
    ) -> None:
        self.shapes = {name: tuple(p.shape) for name, p in parameters.items()}
        self.shares = shares
        self.place: dict[str, int] = {}
        self.parts: dict[str, int] = optimizer.parts if optimizer else {}
        self.scales: dict[str, float] = optimizer.scales if optimizer else {}
        self.averages = 0
        self.matrices = {n for n, p in parameters.items() if (optimizer.is_matrix(n, p) if optimizer else p.ndim > 1)}
        end = first_of_adamw = 0
        for name in sorted(self.shapes, key=self._kind):  # stable
            self.place[name] = end
            end += padded(math.prod(self.shapes[name]))
            if name in self.parts:
                first_of_adamw = end
        self.size = end
        self.first_moments, self.second_moments = end, 2 * end - first_of_adamw
        self.gradients = 3 * end - first_of_adamw
        if optimizer and optimizer.ema:
            self.averages, self.gradients = self.gradients, self.gradients + end
        self.workspace = self.gradients + shares * end if training else end

    def _kind(self, name: str) -> tuple[bool, bool, float]:
        """Return the key by which parameters are ordered; those that are updated alike share it."""
        scale = self.scales.get(name, 1.0)
        return name not in self.parts, name not in self.matrices, 0.0 if scale == 1 else scale

    @property
    def ranges(self) -> list[AdamWRange]:
        """The parameters that AdamW updates."""
        found = []
        for (by_adamw, vector, scale), names in groupby(self.place, self._kind):
            *_, last = there = list(names)
            end = self.place[last] + padded(math.prod(self.shapes[last]))
            if by_adamw:
                found.append(AdamWRange(self.place[there[0]], end, not vector, scale or 1.0))
        return found
