"""Layout: give every buffer of a builder its place, so that arrays which never live at the same time share memory.

A value lives from the first call that touches it to the last. The largest are placed first, each at the lowest
offset where it meets no other that lives at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable

from byhand.runtimes.loops.program.calls import Buffer, Call
from byhand.runtimes.loops.program.regions import padded


def place_in_order(buffers: Iterable[Buffer], start: int = 0) -> int:
    """Place buffers one after the other from `start`; return the end."""
    for buffer in buffers:
        buffer.offset = start
        start += padded(buffer.words)
    return start


def place_by_lifetime(calls: list[Call], start: int = 0) -> int:
    """Place the values that the calls touch, from `start` on; return the end."""
    values: dict[int, Buffer] = {}
    for i, call in enumerate(calls):
        for buffer in call.buffers:
            if buffer.kind == "value":
                if id(buffer) not in values:
                    values[id(buffer)] = buffer
                    buffer.first = i
                buffer.last = i
    placed: list[Buffer] = []
    end = start
    for buffer in sorted(values.values(), key=lambda b: (-b.words, b.first)):
        offset = start
        alive = (b for b in placed if b.first <= buffer.last and buffer.first <= b.last)
        for other in sorted(alive, key=lambda b: b.offset):
            if offset + padded(buffer.words) <= other.offset:
                break
            offset = max(offset, other.offset + padded(other.words))
        buffer.offset = offset
        placed.append(buffer)
        end = max(end, offset + padded(buffer.words))
    return end
