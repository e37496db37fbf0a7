"""Arena: the one flat float32 memory of a run, laid out as `Regions` says.

A model's arrays become views of the arena: what a step changes is at once what evaluation, sampling and checkpoints
see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from byhand.engine import Tensor
from byhand.optim import Optimizer
from byhand.runtimes.loops.program.regions import ALIGN, AVERAGE, Regions


class Arena:
    """The memory, and the views that hand out parameters, state and averages by name; see `Regions`."""

    def __init__(
        self, parameters: Mapping[str, Tensor], shares: int, training: bool = True, optimizer: Optimizer | None = None
    ) -> None:
        self.parameters = dict(parameters)
        self._optimizer = optimizer
        self.regions = Regions(parameters, shares, training, optimizer)
        self.memory = _aligned(self.regions.workspace)
        self.words = self.memory.view(np.int32)
        self._arrays: dict[tuple[int, tuple[int, ...], bool], np.ndarray] = {}
        self._make_views()
        self.adopt()

    def reserve(self, workspace: int) -> None:
        """Make the workspace at least this large; everything moves, and the views with it."""
        if self.regions.workspace + workspace > self.memory.size:
            memory = _aligned(self.regions.workspace + workspace)
            memory[: self.memory.size] = self.memory
            self.memory, self.words = memory, memory.view(np.int32)
            self._arrays.clear()
            self._make_views()
            self.adopt()

    def adopt(self) -> None:
        """Take over arrays that were exchanged from outside, so that model and optimizer hold views of the arena."""
        for name, tensor in self.parameters.items():
            if tensor.data is not (theta := self._views[name]):
                theta[...] = tensor.data
                tensor.data = theta
        if self._optimizer:
            held = {**self._optimizer.moments, AVERAGE: self._optimizer.averages}
            for kind, views in self._kept.items():
                for name, view in views.items():
                    if held[kind].get(name) is not view:
                        view[...] = held[kind].get(name, self._views[name] if kind == AVERAGE else 0)
                        held[kind][name] = view

    def view(self, start: int, shape: tuple[int, ...], words: bool = False) -> np.ndarray:
        """Return the array of this shape at an offset, float32, or int32 for words."""
        return (self.words if words else self.memory)[start : start + math.prod(shape)].reshape(shape)

    def array(self, start: int, shape: tuple[int, ...], words: bool) -> np.ndarray:
        """Return the view, made once, as every step asks for it."""
        key = start, shape, words
        if key not in self._arrays:
            self._arrays[key] = self.view(*key)
        return self._arrays[key]

    def gradient(self, name: str) -> np.ndarray:
        """Return a parameter's gradient, summed over the shares after a step's plan."""
        return self.view(self.regions.gradients + self.regions.place[name], self.regions.shapes[name])

    def _make_views(self) -> None:
        """Make the view of each parameter, and by kind those of its state and its average."""
        self._views: dict[str, np.ndarray] = {}
        self._kept: dict[str, dict[str, np.ndarray]] = {}
        for name, place in self.regions.place.items():
            shape = self.regions.shapes[name]
            self._views[name] = self.view(place, shape)
            for kind, start in self.regions.kept(name).items():
                self._kept.setdefault(kind, {})[name] = self.view(start, shape)


def _aligned(size: int) -> np.ndarray:
    """Return zeros that begin on a cache line."""
    spare = np.zeros(size + ALIGN, np.float32)
    start = -spare.ctypes.data % (4 * ALIGN) // 4
    return spare[start : start + size]
