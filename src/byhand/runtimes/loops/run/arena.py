"""Arena: the one flat float32 memory of a run, laid out as `Regions` says.

A model's arrays become views of the arena: what a step changes is at once what evaluation, sampling and checkpoints
see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from byhand.engine import Tensor
from byhand.optim import Optimizer, State
from byhand.runtimes.loops.program.regions import ALIGN, AVERAGE, Regions


class Arena:
    """The memory, and the views that hand out parameters, state and averages by name; see `Regions`."""

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        shares: int,
        training: bool = True,
        optimizer: Optimizer | None = None,
    ) -> None:
        self.parameters = dict(parameters)
        self.regions = Regions(parameters, shares, training, optimizer)
        self.memory = _aligned(self.regions.workspace)
        self.words = self.memory.view(np.int32)
        self._views = self._make_views()
        self._arrays: dict[tuple[int, tuple[int, ...], bool], np.ndarray] = {}
        self._state = State({}, {}, {})
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

    def adopt(self, state: State | None = None) -> None:
        """Take over arrays that were exchanged from outside, so that model and optimizer hold views of the arena.

        state  the optimizer's moments and averages; those of the last time if not given
        """
        self._state = state or self._state
        held = {**self._state.moments, AVERAGE: self._state.averages}
        for name, (theta, views) in self._views.items():
            tensor = self.parameters[name]
            if tensor.data is not theta:
                theta[...] = tensor.data
                tensor.data = theta
            for kind, view in views.items():
                if (arrays := held.setdefault(kind, {})).get(name) is not view:
                    view[...] = arrays.get(name, theta if kind == AVERAGE else 0)
                    arrays[name] = view

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

    def _make_views(self) -> dict[str, tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Return the view of each parameter, and those of its state and its average by kind."""
        found, regions = {}, self.regions
        for name, place in regions.place.items():
            shape = regions.shapes[name]
            kept = {kind: self.view(start, shape) for kind, start in regions.kept(name).items()}
            found[name] = self.view(place, shape), kept
        return found


def _aligned(size: int) -> np.ndarray:
    """Return zeros that begin on a cache line."""
    spare = np.zeros(size + ALIGN, np.float32)
    start = -spare.ctypes.data % (4 * ALIGN) // 4
    return spare[start : start + size]
