"""Arena: the one flat float32 memory of a run.

    parameters | first moments | second moments | gradients of each share | workspace of the plans

Parameters that decay come first, so that the update is at most two ranges for each thread. A model's arrays become
views of the arena: what a step changes is at once what evaluation, sampling and checkpoints see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.runtimes.loops.lowering.layout import padded

CACHE_LINE = 64  # bytes


class Arena:
    """The memory, where each parameter lies in its regions, and the views that hand them out by name.

    Without `training` it has only the parameters and the workspace. `is_matrix` tells the parameters that decay where
    not everything does.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        shares: int,
        training: bool = True,
        is_matrix: Callable[[str, Tensor], bool] = lambda name, parameter: parameter.ndim >= 2,
    ) -> None:
        self.parameters = dict(parameters)
        self.shares = shares
        self.place: dict[str, int] = {}
        self.matrices_end = end = 0
        matrices = {name for name, parameter in self.parameters.items() if is_matrix(name, parameter)}
        for name in sorted(self.parameters, key=lambda n: n not in matrices):  # stable: matrices first
            self.place[name] = end
            end += padded(math.prod(self.parameters[name].shape))
            if name in matrices:
                self.matrices_end = end
        self.region = end  # elements in a region that holds one number for each parameter
        self.training = training
        self.first_moments, self.second_moments = end, 2 * end
        self.gradients = 3 * end
        self.workspace = (3 + shares) * end if training else end
        self.memory = _aligned(self.workspace)
        self.words = self.memory.view(np.int32)
        self._views = self._make_views()
        self._arrays: dict[tuple[int, tuple[int, ...], bool], np.ndarray] = {}
        self._moments: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        self.adopt()

    def reserve(self, workspace: int) -> None:
        """Make the workspace at least this large; everything moves, and the views with it."""
        if self.workspace + workspace > self.memory.size:
            memory = _aligned(self.workspace + workspace)
            memory[: self.memory.size] = self.memory
            self.memory, self.words = memory, memory.view(np.int32)
            self._views = self._make_views()
            self._arrays.clear()
            self.adopt()

    def adopt(self, moments: tuple[dict[str, Any], dict[str, Any]] | None = None) -> None:
        """Take over arrays that were exchanged from outside, so that model and optimizer hold views of the arena.

        moments  the optimizer's m and v; those of the last time if not given
        """
        m, v = self._moments = moments or self._moments
        for name, (theta, first, second) in self._views.items():
            tensor = self.parameters[name]
            if tensor.data is not theta:
                theta[...] = tensor.data
                tensor.data = theta
            for held, view in ((m, first), (v, second)) if self.training else ():
                if held.get(name) is not view:
                    view[...] = held.get(name, 0)
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

    def _make_views(self) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        first, second = (self.first_moments, self.second_moments) if self.training else (0, 0)
        return {
            name: (self.view(place, shape), self.view(first + place, shape), self.view(second + place, shape))
            for name, place in self.place.items()
            for shape in [tuple(self.parameters[name].shape)]
        }


def _aligned(size: int) -> np.ndarray:
    """Return zeros that begin on a cache line."""
    spare = np.zeros(size + CACHE_LINE // 4, np.float32)
    start = -spare.ctypes.data % CACHE_LINE // 4
    return spare[start : start + size]
