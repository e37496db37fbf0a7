"""Rows of parts. A long row makes its parts on demand; their values are arrays from the start.

The function that makes the part at a place also makes, from an array of places, their outline: one term whose numbers
are arrays. Labelled inner terms of the parts must be the same at every place, like a row's mean.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

FEW = 64  # up to this many parts are made at once


class Row(Sequence[Any]):
    """Many parts.

    places  the row's places, an array of integers
    part    (place) -> the part; (array of places) -> their outline
    values  the parts' values, if known
    """

    def __init__(self, places: Any, part: Callable[[Any], Any], values: Any = None) -> None:
        self.places, self._part = places, part
        self._made: dict[int, Any] = {}
        if values is not None:
            self.values = values

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, which: Any) -> Any:
        """Return one part; for a slice, the parts, made if they are few; for an array, their outline."""
        if isinstance(which, slice):
            chosen = self.places[which]
            row = Row(chosen, self.at, self.values[which])
            return row if len(chosen) > FEW else tuple(row)
        places = self.places[which]
        return self.at(places if places.shape else int(places))

    def __iter__(self) -> Iterator[Any]:
        return map(self.at, self.places.tolist())

    def at(self, place: Any) -> Any:
        """Return the part at a place, the same object every time; for an array of places, their outline."""
        if not isinstance(place, int):
            return self._part(place)
        if place not in self._made:
            self._made[place] = self._part(place)
        return self._made[place]

    def where(self, wanted: Any) -> Row:
        """Return the row of the parts for which `wanted` is not zero."""
        import numpy as np

        return Row(self.places[np.broadcast_to(wanted != 0, len(self))], self.at)

    def mapped(self, change: Callable[[Any], Any]) -> Row:
        """Return the row of changed parts."""
        return Row(self.places, lambda place: change(self.at(place)))

    @cached_property
    def outline(self) -> Any:
        """One term for all parts: its values are arrays, or a number if all parts share it."""
        return self._part(self.places)

    @cached_property
    def values(self) -> Any:
        """The value of each part."""
        import numpy as np  # slow to import

        return np.broadcast_to(self.outline.value, len(self))


class Joined(Sequence[Any]):
    """Rows and parts, concatenated."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self.rows = rows
        self._ends = list(accumulate(map(len, rows)))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, which: Any) -> Any:
        """Return one part, or a slice of them."""
        if isinstance(which, slice):
            return tuple(map(self.__getitem__, range(len(self))[which]))
        which = range(len(self))[which]
        row = bisect_right(self._ends, which)
        return self.rows[row][which - (self._ends[row - 1] if row else 0)]

    def mapped(self, change: Callable[[Any], Any]) -> Joined:
        """Return the row of changed parts."""
        return Joined([mapped(change, row) for row in self.rows])

    @cached_property
    def values(self) -> Any:
        """The number of each part."""
        import numpy as np

        return np.concatenate([values(row) for row in self.rows])


def over(count: int, part: Callable[[Any], Any]) -> Sequence[Any]:
    """Return the parts at places 0 to count - 1."""
    if count <= FEW:
        return tuple(map(part, range(count)))
    import numpy as np

    return Row(np.arange(count), part)


def joined(*rows: Sequence[Any]) -> Sequence[Any]:
    """Return the parts of these rows, concatenated."""
    rows = tuple(row for row in rows if len(row))
    long = any(isinstance(row, Row | Joined) for row in rows)
    return Joined(rows) if long else tuple(part for row in rows for part in row)


def mapped(change: Callable[[Any], Any], parts: Sequence[Any]) -> Sequence[Any]:
    """Return changed parts."""
    return parts.mapped(change) if isinstance(parts, Row | Joined) else tuple(map(change, parts))


def values(parts: Sequence[Any]) -> Any:
    """Return the values of parts: an array for a long row, else a list."""
    return parts.values if isinstance(parts, Row | Joined) else [part.value for part in parts]


def ranked(parts: Sequence[Any]) -> Sequence[Any]:
    """Return parts, largest magnitude first."""
    if not isinstance(parts, Row | Joined):
        return tuple(sorted(parts, key=lambda part: -abs(part.value)))
    order = (-abs(parts.values)).argsort(kind="stable")
    return Row(order, parts.__getitem__, parts.values[order])


def outlines(parts: Sequence[Any]) -> Iterator[Any]:
    """Yield parts, but one outline for each long row."""
    if isinstance(parts, Row):
        yield parts.outline
    elif isinstance(parts, Joined):
        for row in parts.rows:
            yield from outlines(row)
    else:
        yield from parts
