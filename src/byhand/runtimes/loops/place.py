"""Layout: allocate a builder's buffers, so that arrays with disjoint lifetimes share memory.

A value lives from the first call that touches it to the last. First fit, the largest first: each at the lowest offset
at which it overlaps no value whose lifetime intersects its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer, Call
from byhand.runtimes.loops.program.regions import padded


@dataclass(frozen=True)
class Workspace:
    """The memory behind the regions: constants, then for each share its inputs and values.

    constants, inputs  where they end, the latter in a share's memory
    stride             from one share's memory to the next
    """

    constants: int
    inputs: int
    stride: int
    shares: int

    @property
    def size(self) -> int:
        """The float32 that it takes."""
        return self.constants + self.shares * self.stride

    def start(self, share: int) -> int:
        """Return where a share's memory begins, from the workspace on."""
        return self.constants + share * self.stride


def place_shares(programs: Sequence[Builder], scratch: int) -> Workspace:
    """Place the buffers of all shares; the update needs `scratch` behind the inputs."""
    different = list({id(program): program for program in programs}.values())
    constants = place_in_order(buffer for program in different for buffer, _ in program.constants.values())
    inputs = max(place_in_order(program.inputs.values()) for program in different)
    stride = max(place_by_lifetime(program.calls, inputs) for program in different)
    return Workspace(constants, inputs, max(stride, inputs + scratch), len(programs))


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
