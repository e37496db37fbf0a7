"""The elements that a number was computed from: found on demand, and counted without making them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from byhand.engine.operations import is_array
from byhand.engine.terms import Index, Term, element_name

Origin = Mapping[str, Any]  # an array's description in JSON


def origin(name: str, gradient: bool = False) -> dict[str, Any]:
    """Return the JSON description of a tensor, or of its gradient."""
    return {"name": name, "gradient": gradient}


def answer_name(name: str, index: Index, gradient: bool = False) -> str:
    """Return an element in `explain`'s notation: `logits[0,2,65]`, or `d logits[0,2,65]` for its gradient."""
    return f"{'d ' if gradient else ''}{element_name(name, index)}"


@dataclass(frozen=True)
class Element:
    """An element that a number was computed from; `letter` is its tensor's symbol in the equation."""

    name: str
    index: Index
    value: float
    letter: str = ""
    gradient: bool = False

    @classmethod
    def of(cls, leaf: Term, tensor: Origin) -> Element:
        """Return the element that a leaf was read from."""
        letter, place = leaf.label.partition("[")[0], leaf.source[1] if leaf.source else ()
        return cls(tensor["name"], place, leaf.value, "" if "/" in letter else letter, tensor["gradient"])

    @property
    def target(self) -> str:
        """The element in `explain`'s notation."""
        return answer_name(self.name, self.index, self.gradient)

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        place = {**origin(self.name, self.gradient), "index": list(self.index)}
        return {"target": self.target, **place, "letter": self.letter, "value": self.value}


class Elements(Sequence[Element]):
    """Elements in order, found on demand; `count` returns their number."""

    def __init__(self, found: Iterable[Element], count: Callable[[], int]) -> None:
        self._left, self._count = iter(found), cache(count)
        self._found: list[Element] = []

    def __len__(self) -> int:
        return self._count()

    def __getitem__(self, which: Any) -> Any:
        """Return one element, or a slice of them."""
        if isinstance(which, slice):
            return tuple(map(self.__getitem__, range(len(self))[which]))
        which = range(len(self))[which]
        self._found += islice(self._left, max(0, which + 1 - len(self._found)))
        return self._found[which]


def read_from(leaves: Iterable[Term], origins: Sequence[Origin]) -> Iterator[Element]:
    """Yield the distinct elements of tensors and gradients that leaves were read from."""
    seen: set[Any] = set()
    for leaf in leaves:
        if leaf.source is not None and leaf.source not in seen and "name" in origins[leaf.source[0]]:
            seen.add(leaf.source)
            yield Element.of(leaf, origins[leaf.source[0]])


def sorted_by(
    first: Callable[[Index], Any], outlines: Iterable[Term], origins: Sequence[Origin]
) -> Iterator[Element]:
    """Yield the elements of outlines at a `first` place, then the others, both in decreasing order of value."""
    rows = {(which, *map(_key, place)): (leaf, which, place) for leaf, which, place in _read(outlines)}.values()
    done: set[Any] = set()
    for wanted in (True, False):
        chosen = [
            np.flatnonzero(np.broadcast_to(first(place) == wanted, np.size(leaf.value))) for leaf, _, place in rows
        ]
        numbers = np.concatenate(
            [np.atleast_1d(leaf.value)[places] for (leaf, *_), places in zip(rows, chosen, strict=True)]
        )
        owners = [row for row, places in zip(rows, chosen, strict=True) for _ in places.tolist()]
        places = np.concatenate(chosen)
        for k in (-numbers).argsort(kind="stable").tolist():
            leaf, which, place = owners[k]
            index = tuple(int(axis[places[k]]) if is_array(axis) else axis for axis in place)
            if (which, index) not in done:
                done.add((which, index))
                yield Element.of(replace(leaf, value=float(numbers[k]), source=(which, index)), origins[which])


def _read(outlines: Iterable[Term]) -> Iterator[tuple[Term, int, Index]]:
    return ((leaf, *leaf.source) for leaf in outlines if leaf.source is not None)


def _key(axis: Any) -> Any:
    """Return a key for an axis of places: the same array means the same places."""
    return id(axis) if is_array(axis) else axis


def counted(outlines: Iterable[Term]) -> int:
    """Return the number of elements that the leaves of outlines were read from."""
    read: dict[int, list[Any]] = {}
    for _, which, place in _read(outlines):
        read.setdefault(which, []).append(place)
    return sum(map(_distinct, read.values()))


def _distinct(places: list[Any]) -> int:
    """Return the number of distinct places; each axis is a number or an array."""
    if not any(is_array(axis) for place in places for axis in place):
        return len(set(places))
    ends = [[(np.min(axis), np.max(axis)) for axis in place if np.size(axis)] for place in places]
    low = np.min([[first for first, _ in place] for place in ends if place], axis=0)
    high = np.max([[last for _, last in place] for place in ends if place], axis=0)
    read = np.zeros(high - low + 1, dtype=bool)
    for place in places:
        read[tuple(axis - first for axis, first in zip(place, low, strict=True))] = True
    return int(np.count_nonzero(read))
