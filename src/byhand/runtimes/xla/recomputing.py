"""Rematerialisation: which arrays of a block are kept for the backward pass, and which it recomputes.

In the forward pass the kept arrays become outputs of the scan. In the backward pass the block is traced again with
these substituted, and XLA eliminates the dead code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from byhand.engine.arrays import as_tuple
from byhand.runtimes.xla.applying import Applying, TraceSettings
from byhand.runtimes.xla.halves import Halves

Place = tuple[int, str, int]  # index of the application, "saved" or "result", index of the array


class Keeping(Applying):
    """The forward pass of a block: collects the kept `arrays` and the `places` of each."""

    def __init__(self, settings: TraceSettings, known: list[Any]) -> None:
        super().__init__(settings)
        self._known = {id(a): a for a in known}  # the block's inputs are kept anyway
        self._count = 0
        self.arrays: list[Any] = []
        self.places: list[Place] = []

    def rounded(self, array: Any, kind: Any) -> Any:
        """Round; the copy of a known array is known, too, and not kept."""
        made = super().rounded(array, kind)
        if id(array) in self._known:
            self._known[id(made)] = made
        return made

    def wrapped(self, halves: Halves) -> Halves:
        """Wrap the forward half to keep the arrays that the settings name."""
        number, self._count = self._count, self._count + 1

        def forward(*inputs: Any, **static: Any) -> Any:
            result, saved = halves.forward(*inputs, **static)
            for what, arrays in _kept(self.settings.recompute, halves, result, saved):
                for i, array in enumerate(arrays):
                    if id(array) not in self._known:
                        self._known[id(array)] = array
                        self.arrays.append(array)
                        self.places.append((number, what, i))
            return result, saved

        return replace(halves, forward=forward)


class Recomputing(Applying):
    """The same block in the backward pass, with the kept arrays in their places."""

    def __init__(self, settings: TraceSettings, places: list[Place], arrays: list[Any]) -> None:
        super().__init__(settings)
        self._kept = dict(zip(places, arrays, strict=True))
        self._count = 0
        self._exchanged: dict[int, tuple[Any, Any]] = {}  # a recomputed array, and the kept one in its place

    def wrapped(self, halves: Halves) -> Halves:
        """Wrap the forward half to replace its arrays by the kept ones."""
        number, self._count = self._count, self._count + 1

        def forward(*inputs: Any, **static: Any) -> Any:
            result, saved = halves.forward(*inputs, **static)
            parts = as_tuple(result)
            for what, arrays in (("saved", saved), ("result", parts)):
                for i, array in enumerate(arrays):
                    if (number, what, i) in self._kept:
                        self._exchanged[id(array)] = array, self._kept[number, what, i]
            results, kept = (
                tuple(self._exchanged.get(id(a), (a, a))[1] for a in arrays) for arrays in (parts, saved)
            )
            return results if isinstance(result, tuple) else results[0], kept

        return replace(halves, forward=forward)


def _kept(recompute: str, halves: Halves, result: Any, saved: Any) -> Iterator[tuple[str, Any]]:
    if recompute == "nothing" or (recompute == "cheap" and halves.name == "attention"):
        yield "saved", saved
    if recompute == "cheap" and halves.multiplies:
        yield "result", as_tuple(result)
