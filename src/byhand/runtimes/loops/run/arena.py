"""Arena: the one flat float32 memory of a run, laid out by `Regions`.

A model's arrays become views of the arena, so evaluation, sampling and checkpoints see a step's changes at once.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from byhand.engine import Tensor
from byhand.engine.graph.outline import Outline
from byhand.files.weights import OWN_PAGES, own_pages
from byhand.optim import Optimizer
from byhand.runtimes.loops.program.regions import ALIGN, AVERAGE, Regions


class Arena:
    """The memory, with views of parameters, state and averages by name; see `Regions`."""

    def __init__(
        self, parameters: Mapping[str, Tensor], shares: int, training: bool = True, optimizer: Optimizer | None = None
    ) -> None:
        self.parameters = dict(parameters)
        self._optimizer, self._training = optimizer, training
        self.regions = Regions(parameters, shares, training, optimizer)
        self._size = self.regions.workspace
        self._memory: np.ndarray | None = None
        self._arrays: dict[tuple[int, tuple[int, ...], bool], np.ndarray] = {}
        self._views: dict[str, np.ndarray] = {}
        self._kept: dict[str, dict[str, np.ndarray]] = {}

    @property
    def memory(self) -> np.ndarray:
        """The whole memory, allocated on first use with the size that the plans made so far need."""
        if self._memory is None:
            self._make()
        assert self._memory is not None
        return self._memory

    @property
    def words(self) -> np.ndarray:
        """The memory as int32."""
        return self.memory.view(np.int32)

    def reserve(self, workspace: int) -> None:
        """Make the workspace at least this large; may move the memory, and the views with it."""
        self._size = max(self._size, self.regions.workspace + workspace)
        if self._memory is not None and self._memory.size < self._size:
            self._make()

    def _make(self) -> None:
        """Allocate the memory, or a larger one; an interrupt leaves the old one, or one that `adopt` completes."""
        memory = _aligned(self._size, self._training)
        if self._memory is not None:
            memory[: self._memory.size] = self._memory
        views, kept = self._views_in(memory)
        self._memory, self._views, self._kept, self._arrays = memory, views, kept, {}
        self.adopt()
        give_back()

    def adopt(self) -> None:
        """Copy in arrays that were replaced from outside; afterwards model and optimizer hold views of the arena."""
        if self._memory is None:
            return self._make()
        for name, tensor in self.parameters.items():
            if tensor.data is not (theta := self._views[name]):
                if not isinstance(tensor.data, Outline):  # an outline has no data
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
        """Return the array of this shape at an offset: float32, or int32 for words."""
        return (self.words if words else self.memory)[start : start + math.prod(shape)].reshape(shape)

    def array(self, start: int, shape: tuple[int, ...], words: bool) -> np.ndarray:
        """Return the view, cached since every step needs it."""
        key = start, shape, words
        if key not in self._arrays:
            self._arrays[key] = self.view(*key)
        return self._arrays[key]

    def gradient(self, name: str) -> np.ndarray:
        """Return a parameter's gradient, summed over the shares after a step's plan."""
        return self.view(self.regions.gradients + self.regions.place[name], self.regions.shapes[name])

    def _views_in(self, memory: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, dict[str, np.ndarray]]]:
        """Return each parameter's view, and the views of its state and average by kind."""
        views, kept = dict[str, np.ndarray](), dict[str, dict[str, np.ndarray]]()
        for name, place in self.regions.place.items():
            shape = self.regions.shapes[name]
            size = math.prod(shape)
            views[name] = memory[place : place + size].reshape(shape)
            for kind, start in self.regions.kept(name).items():
                kept.setdefault(kind, {})[name] = memory[start : start + size].reshape(shape)
        return views, kept


def give_back() -> None:
    """Make glibc return the pages of freed arrays; it would keep those between live arrays."""
    with suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _aligned(size: int, training: bool) -> np.ndarray:
    """Return cache-aligned zeros; for generation, prefer pages that are quick to map over large ones."""
    words = size + ALIGN
    numpys = training or 4 * words < OWN_PAGES
    spare = np.zeros(words, np.float32) if numpys else own_pages(4 * words).view(np.float32)
    start = -spare.ctypes.data % (4 * ALIGN) // 4
    return spare[start : start + size]
