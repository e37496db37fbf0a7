"""Plan: a step's tables of integers, one for each share of the batch, and its constants.

A share's table is its program with every place filled in; steps in Python (equations without a kernel) cut it into
segments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byhand.engine.node import Variable
from byhand.runtimes.loops.encode.tables import RowEncoder
from byhand.runtimes.loops.lower.training import Lowering, programs, split
from byhand.runtimes.loops.lower.update import scratch_of_matrices, update_calls
from byhand.runtimes.loops.place import place_shares
from byhand.runtimes.loops.program.calls import Buffer, Call, Part, parts_of
from byhand.runtimes.loops.program.regions import Regions
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.share import Share


@dataclass
class Plan:
    """The shares of a step for one shape, and its constants."""

    shares: list[Share]
    constants: list[tuple[Buffer, Any]]
    _parts: dict[tuple[int, bool, bool], list[Part]] = field(default_factory=dict, repr=False)

    @property
    def calls(self) -> list[Call]:
        """The calls of the first share."""
        return self.shares[0].calls

    @property
    def tables(self) -> list[np.ndarray]:
        """The tables of all shares."""
        return [table for share in self.shares for table in share.tables]

    def write_constants(self) -> None:
        """Write the constants into the arena; needed after another plan has used the workspace."""
        for buffer, value in self.constants:
            self.shares[0].array(buffer)[...] = value

    def parts(self, share: Share, computes: bool = True, updates: bool = True) -> list[Part]:
        """Return a share's parts: loss and gradients before its first barrier, the update after it."""
        key = id(share), computes, updates
        if key not in self._parts:
            barrier = next((i for i, c in enumerate(share.calls) if c.kernel == "barrier"), len(share.calls))
            self._parts[key] = parts_of(share.calls if updates else share.calls[:barrier], 0 if computes else barrier)
        return self._parts[key]


def make_plan(
    compute: Callable[..., Variable],
    inputs: Mapping[str, tuple[int, ...]],
    arena: Arena,
    how: Lowering,
    parameters: int = 0,
) -> Plan:
    """Lower compute(**inputs) for each share, place, and encode; with `how.backward` the plan ends with the update.

    inputs      the whole batch's shapes, batch first
    parameters  offset in the arena of the weights to use
    """
    regions = arena.regions
    sizes = split(_rows(inputs), regions.shares)
    made = programs(compute, inputs, sizes, arena.parameters, how)
    work = place_shares(made, scratch_of_matrices(regions, how.tiles) if how.backward else 0)
    arena.reserve(work.size)
    shares = []
    for number, (size, program) in enumerate(zip(sizes, made, strict=True)):
        values, calls = regions.workspace + work.start(number), program.calls
        starts = {
            "parameter": parameters, "gradient": regions.gradients + number * regions.size,
            "constant": regions.workspace, "input": values, "value": values,
        }  # fmt: skip
        if how.backward:
            calls = calls + update_calls(regions, number, len(made), values + work.inputs, how.tiles)
        encoder = RowEncoder(number, starts, regions.place)
        tables = [encoder.table(calls, adds) for adds in ((False, True) if how.backward else (False,))]
        shares.append(Share(size, calls, program.inputs, arena, encoder, tables))
    different = {id(program): program for program in made}.values()
    return Plan(shares, [constant for program in different for constant in program.constants.values()])


def arena_size(
    loss: Callable[..., Variable], shape: tuple[int, int], regions: Regions, parameters: Mapping[str, Variable],
    how: Lowering,
) -> int:  # fmt: skip
    """Return the size, in float32, of the arena of a training step on tokens (B, T), without allocating it."""
    inputs = {"tokens": shape, "targets": shape}
    made = programs(loss, inputs, split(shape[0], regions.shares), parameters, how)
    return regions.workspace + place_shares(made, scratch_of_matrices(regions, how.tiles)).size


def _rows(inputs: Mapping[str, tuple[int, ...]]) -> int:
    return next(iter(inputs.values()))[0]
