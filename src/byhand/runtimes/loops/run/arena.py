"""Arena: the one flat float32 memory of a run.

    parameters | first moments | second moments | averages | gradients of each share | workspace of the plans

Muon's parameters come first and have no second moments; then those that decay, those of one learning rate together,
so that AdamW's update is a few ranges for each thread. Averages are there if the optimizer keeps some. A model's
arrays become views of the arena: what a step changes is at once what evaluation, sampling and checkpoints see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from byhand.engine import Tensor
from byhand.runtimes.loops.place.layout import padded

CACHE_LINE = 64  # bytes


class AdamWRange(NamedTuple):
    """Parameters side by side that AdamW updates alike: from the first to before the last, and how."""

    first: int
    last: int
    is_matrix: bool
    scale: float


class Arena:
    """The memory, where each parameter lies in its regions, and the views that hand them out by name.

    Without `training` it has only the parameters and the workspace. The optimizer tells the parameters that decay
    where not everything does, those of Muon, and the learning rates.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        shares: int,
        training: bool = True,
        optimizer: Any = None,
    ) -> None:
        self.parameters = dict(parameters)
        self.shares = shares
        self.place: dict[str, int] = {}
        self.parts: dict[str, int] = optimizer.parts if optimizer else {}  # of Muon: matrices in an array
        self.scales: dict[str, float] = optimizer.scales if optimizer else {}
        self.averages = 0  # where they begin; 0: there are none
        self.matrices = {
            n for n, p in self.parameters.items() if (optimizer.is_matrix(n, p) if optimizer else p.ndim > 1)
        }
        end = first_of_adamw = 0
        for name in sorted(self.parameters, key=self._kind):  # stable
            self.place[name] = end
            end += padded(math.prod(self.parameters[name].shape))
            if name in self.parts:
                first_of_adamw = end
        self.region = end  # elements in a region that holds one number for each parameter
        self.training = training
        self.first_moments, self.second_moments = end, 2 * end - first_of_adamw
        self.gradients = 3 * end - first_of_adamw
        if optimizer and optimizer.ema:
            self.averages, self.gradients = self.gradients, self.gradients + end
        self.workspace = self.gradients + shares * end if training else end
        self.memory = _aligned(self.workspace)
        self.words = self.memory.view(np.int32)
        self._views = self._make_views()
        self._arrays: dict[tuple[int, tuple[int, ...], bool], np.ndarray] = {}
        self._state: tuple[dict[str, Any], ...] = ({}, {}, {})
        self.adopt()

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
            end = self.place[last] + padded(math.prod(self.parameters[last].shape))
            if by_adamw:
                found.append(AdamWRange(self.place[there[0]], end, not vector, scale or 1.0))
        return found

    def reserve(self, workspace: int) -> None:
        """Make the workspace at least this large; everything moves, and the views with it."""
        if self.workspace + workspace > self.memory.size:
            memory = _aligned(self.workspace + workspace)
            memory[: self.memory.size] = self.memory
            self.memory, self.words = memory, memory.view(np.int32)
            self._views = self._make_views()
            self._arrays.clear()
            self.adopt()

    def adopt(self, state: tuple[dict[str, Any], ...] | None = None) -> None:
        """Take over arrays that were exchanged from outside, so that model and optimizer hold views of the arena.

        state  the optimizer's m, v and averages; those of the last time if not given
        """
        m, v, averages = self._state = state or self._state
        for name, (theta, first, second, average) in self._views.items():
            tensor = self.parameters[name]
            if tensor.data is not theta:
                theta[...] = tensor.data
                tensor.data = theta
            for held, view, start in ((m, first, 0), (v, second, 0), (averages, average, theta)):
                if view is not None and held.get(name) is not view:
                    view[...] = held.get(name, start)
                    held[name] = view

    def view(self, start: int, shape: tuple[int, ...], words: bool = False) -> np.ndarray:
        """Return the array of this shape at an offset, float32, or int32 for words."""
        return (self.words if words else self.memory)[start : start + math.prod(shape)].reshape(shape)

    def array(self, start: int, shape: tuple[int, ...], words: bool) -> np.ndarray:
        """Return the view, made once, as every step asks for it."""
        key = start, shape, words
        if key not in self._arrays:
            self._arrays[key] = self.view(*key)
        return self._arrays[key]

    def _make_views(self) -> dict[str, tuple[Any, ...]]:
        """Return the views of each parameter, its moments and its average; None for what is not kept."""
        found = {}
        for name, place in self.place.items():
            second = 0 if name in self.parts else self.second_moments
            starts = (self.first_moments, second, self.averages) if self.training else (0, 0, 0)
            shape = tuple(self.parameters[name].shape)
            views = (self.view(start + place, shape) if start else None for start in starts)
            found[name] = (self.view(place, shape), *views)
        return found


def _aligned(size: int) -> np.ndarray:
    """Return zeros that begin on a cache line."""
    spare = np.zeros(size + CACHE_LINE // 4, np.float32)
    start = -spare.ctypes.data % CACHE_LINE // 4
    return spare[start : start + size]
