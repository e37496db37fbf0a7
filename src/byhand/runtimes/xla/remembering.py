"""What a block keeps for the way back, and what is computed again.

Forward, the arrays that the settings keep become results of the scan. Backward, the block is traced once more with
these in their places: what they make superfluous is never computed, since XLA drops what nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from byhand.runtimes.xla.applying import Applying, Piece, TraceSettings

Place = tuple[int, str, int]  # number of the application, "saved" or "result", number of the array


class Keeping(Applying):
    """The forward pass of a block: `arrays` fills with what is kept, `places` with where each stands."""

    def __init__(self, settings: TraceSettings, known: list[Any]) -> None:
        super().__init__(settings)
        self._known = {id(a): a for a in known}  # inputs of the block: they need no place
        self._count = 0
        self.arrays: list[Any] = []
        self.places: list[Place] = []

    def rounded(self, array: Any, kind: Any) -> Any:
        """Round; what is known need not be kept once more in another type."""
        made = super().rounded(array, kind)
        if id(array) in self._known:
            self._known[id(made)] = made
        return made

    def watched(self, piece: Piece) -> Piece:
        """Keep what the piece gives, as the settings say."""
        number, self._count = self._count, self._count + 1

        def forward(*inputs: Any, **static: Any) -> Any:
            result, saved = piece.forward(*inputs, **static)
            for what, arrays in _kept(self.settings.recompute, piece, result, saved):
                for i, array in enumerate(arrays):
                    if id(array) not in self._known:
                        self._known[id(array)] = array
                        self.arrays.append(array)
                        self.places.append((number, what, i))
            return result, saved

        return Piece(piece.name, forward, piece.vjp, piece.multiplies)


class Remembering(Applying):
    """The same block on the way back, with the kept arrays in their places."""

    def __init__(self, settings: TraceSettings, places: list[Place], arrays: list[Any]) -> None:
        super().__init__(settings)
        self._kept = dict(zip(places, arrays, strict=True))
        self._count = 0
        self._exchanged: dict[int, tuple[Any, Any]] = {}  # what was computed again, and what stands for it

    def watched(self, piece: Piece) -> Piece:
        """Put what was kept in its place."""
        number, self._count = self._count, self._count + 1

        def forward(*inputs: Any, **static: Any) -> Any:
            result, saved = piece.forward(*inputs, **static)
            parts = result if isinstance(result, tuple) else (result,)
            for what, arrays in (("saved", saved), ("result", parts)):
                for i, array in enumerate(arrays):
                    if (number, what, i) in self._kept:
                        self._exchanged[id(array)] = array, self._kept[number, what, i]
            results, kept = (
                tuple(self._exchanged.get(id(a), (a, a))[1] for a in arrays) for arrays in (parts, saved)
            )
            return results if isinstance(result, tuple) else results[0], kept

        return Piece(piece.name, forward, piece.vjp, piece.multiplies)


def _kept(recompute: str, piece: Piece, result: Any, saved: Any) -> Iterator[tuple[str, Any]]:
    if recompute == "nothing" or (recompute == "cheap" and piece.name == "attention"):
        yield "saved", saved
    if recompute == "cheap" and piece.multiplies:
        yield "result", result if isinstance(result, tuple) else (result,)
