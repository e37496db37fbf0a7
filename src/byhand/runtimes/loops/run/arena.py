"""Arena: the one flat float32 memory of a run, laid out as `Regions` says.

A model's arrays become views of the arena: what a step changes is at once what evaluation, sampling and checkpoints
see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.runtimes.loops.program.regions import ALIGN, Regions


class Arena:
    """The memory, and the views that hand out parameters, moments and averages by name; see `Regions`."""

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        shares: int,
        training: bool = True,
        optimizer: Any = None,
    ) -> None:
        self.parameters = dict(parameters)
        self.regions = Regions(parameters, shares, training, optimizer)
        self.training = training
        self.memory = _aligned(self.regions.workspace)
        self.words = self.memory.view(np.int32)
        self._views = self._make_views()
        self._arrays: dict[tuple[int, tuple[int, ...], bool], np.ndarray] = {}
        self._state: tuple[dict[str, Any], ...] = ({}, {}, {})
        self.adopt()

    def reserve(self, workspace: int) -> None:
        """Make the workspace at least this large; everything moves, and the views with it."""
        if self.regions.workspace + workspace > self.memory.size:
            memory = _aligned(self.regions.workspace + workspace)
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
        found, regions = {}, self.regions
        for name, place in regions.place.items():
            second = 0 if name in regions.parts else regions.second_moments
            starts = (regions.first_moments, second, regions.averages) if self.training else (0, 0, 0)
            shape = regions.shapes[name]
            views = (self.view(start + place, shape) if start else None for start in starts)
            found[name] = (self.view(place, shape), *views)
        return found


def _aligned(size: int) -> np.ndarray:
    """Return zeros that begin on a cache line."""
    spare = np.zeros(size + ALIGN, np.float32)
    start = -spare.ctypes.data % (4 * ALIGN) // 4
    return spare[start : start + size]
