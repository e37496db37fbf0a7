"""The part of an array that each host saves: hosts with replicas of a shard divide it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from jax.sharding import Sharding

Ends = tuple[tuple[int, int], ...]  # begin and end of a part along each axis
SMALL = 1024  # elements per host: smaller parts are not divided


def ends_of(index: tuple[slice, ...], shape: tuple[int, ...]) -> Ends:
    """Return begin and end of a part along each axis."""
    return tuple(s.indices(n)[:2] for s, n in zip(index, shape, strict=True))


def holders(sharding: Sharding, shape: tuple[int, ...]) -> dict[Ends, set[int]]:
    """Return the hosts that hold each shard of an array."""
    found: dict[Ends, set[int]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        found.setdefault(ends_of(index, shape), set()).add(device.process_index)
    return found


def divided(held_by: Mapping[Ends, set[int]], loads: Counter[int]) -> Iterator[tuple[int, Ends, Ends]]:
    """Yield (host, its shard, the part it saves): hosts with replicas of a shard divide it.

    loads  elements assigned to each host so far, updated; the least loaded hosts take the larger parts
    """
    for held, hosts in held_by.items():
        parts = sorted(_cut(held, len(hosts)), key=_size, reverse=True)
        for host, part in zip(sorted(hosts, key=lambda host: (loads[host], host)), parts, strict=False):
            loads[host] += _size(part)
            yield host, held, part


def _cut(ends: Ends, count: int) -> list[Ends]:
    """Cut a part along its first axis that divides evenly, or its longest; a small one stays whole."""
    if count == 1 or _size(ends) < count * SMALL:
        return [ends]
    lengths = [end - begin for begin, end in ends]
    axis = next((i for i, n in enumerate(lengths) if n % count == 0), lengths.index(max(lengths)))
    begin, n = ends[axis][0], lengths[axis]
    edges = sorted({begin + n * i // count for i in range(count + 1)})
    return [(*ends[:axis], pair, *ends[axis + 1 :]) for pair in pairwise(edges)]


def _size(ends: Ends) -> int:
    return math.prod(end - begin for begin, end in ends)
