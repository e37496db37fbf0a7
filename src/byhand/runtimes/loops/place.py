"""Layout: allocate a builder's buffers, so that arrays with disjoint lifetimes share memory.

A value lives from the first call that touches it to the last. First fit, largest first: each goes to the lowest
offset that overlaps no value with an intersecting lifetime.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer, Call
from byhand.runtimes.loops.program.regions import padded


@dataclass(frozen=True)
class Workspace:
    """The memory behind the regions: constants, then each share's inputs and values.

    constants, inputs  their end offsets, the latter within a share's memory
    stride             from one share's memory to the next
    """

    constants: int
    inputs: int
    stride: int
    shares: int

    @property
    def size(self) -> int:
        """Its size in float32."""
        return self.constants + self.shares * self.stride

    def start(self, share: int) -> int:
        """Return the offset of a share's memory in the workspace."""
        return self.constants + share * self.stride


def place_shares(programs: Sequence[Builder], scratch: int) -> Workspace:
    """Place the buffers of all shares; reserve `scratch` for the update behind the inputs."""
    different = list({id(program): program for program in programs}.values())
    constants = place_in_order(buffer for program in different for buffer, _ in program.constants.values())
    inputs = max(place_in_order(program.inputs.values()) for program in different)
    stride = max(place_by_lifetime(program.calls, inputs) for program in different)
    return Workspace(constants, inputs, max(stride, inputs + scratch), len(programs))


def place_in_order(buffers: Iterable[Buffer], start: int = 0) -> int:
    """Place buffers consecutively from `start`; return the end."""
    for buffer in buffers:
        buffer.offset = start
        start += padded(buffer.words)
    return start


def place_by_lifetime(calls: list[Call], start: int = 0) -> int:
    """Place the values that calls touch, from `start`; return the end."""
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
