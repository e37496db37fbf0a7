"""Plan: one step as tables of integers, one table for each share of the batch.

A share's table is its builder with every buffer's place filled in; where the builder has steps in Python (equations
without a kernel) the table is cut into segments around them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.engine.graph.record import record
from byhand.errors import ConfigError
from byhand.runtimes.loops.encode.tables import RowEncoder
from byhand.runtimes.loops.lower.fusion import emit_groups, groups_of, rules_of
from byhand.runtimes.loops.lower.update import scratch_of_muon, update_calls
from byhand.runtimes.loops.pattern.rules import Group, Rule
from byhand.runtimes.loops.place.layout import place_by_lifetime, place_in_order
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer, Call, Part, parts_of
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.share import Share


@dataclass
class Plan:
    """The shares of a step for one shape, and the arrays that no step changes."""

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
        """Put the constants into the arena; needed whenever another plan has used the workspace."""
        for buffer, value in self.constants:
            self.shares[0].array(buffer)[...] = value

    def parts(self, share: Share, computes: bool = True, updates: bool = True) -> list[Part]:
        """Return a share's parts: before its first barrier it computes loss and gradients, from there on updates."""
        key = share.number, computes, updates
        if key not in self._parts:
            barrier = next((i for i, c in enumerate(share.calls) if c.kernel == "barrier"), len(share.calls))
            self._parts[key] = parts_of(share.calls if updates else share.calls[:barrier], 0 if computes else barrier)
        return self._parts[key]


def split(batch: int, shares: int) -> list[int]:
    """Return how many rows each share takes: as equal as possible, none empty."""
    shares = min(shares, batch)
    return [batch // shares + (i < batch % shares) for i in range(shares)]


def make_plan(
    compute: Callable[..., Tensor],
    inputs: dict[str, tuple[int, ...]],
    arena: Arena,
    backward: bool,
    inputs_of_products: str = "float32",
    rules: tuple[Rule, ...] | None = None,
    tiles: bool = False,
    parameters: int = 0,
) -> Plan:
    """Record compute(**inputs) for each size of share, and turn it into a plan.

    inputs give the whole batch's shapes, batch first. With `backward` the plan ends with the update.
    inputs_of_products "bfloat16" rounds what linear layers multiply.
    rules say which applications become one, those of training if not given; with `tiles` no BLAS multiplies float32.
    parameters  where in the arena the weights lie that it computes with
    """
    regions = arena.regions
    sizes = split(next(iter(inputs.values()))[0], regions.shares)
    builders: dict[int, Builder] = {}
    for size in dict.fromkeys(sizes):
        arrays: dict[str, Any] = {k: np.zeros((size, *shape[1:]), np.int64) for k, shape in inputs.items()}
        graph = record(compute, **arrays)
        builder = builders[size] = Builder(graph, arena.parameters, inputs_of_products, tiles, trains=backward)
        emit_groups(builder, _checked(groups_of(graph, rules or rules_of("train"))))
    constants = [constant for builder in builders.values() for constant in builder.constants.values()]
    end = place_in_order(buffer for buffer, _ in constants)
    inputs_end = max(place_in_order(b.inputs.values()) for b in builders.values())
    stride = max(place_by_lifetime(b.calls, inputs_end) for b in builders.values())
    if backward:
        stride = max(stride, inputs_end + scratch_of_muon(regions, tiles))
    arena.reserve(end + len(sizes) * stride)
    shares = []
    for number, size in enumerate(sizes):
        values = regions.workspace + end + number * stride
        starts = {
            "parameter": parameters, "gradient": regions.gradients + number * regions.size,
            "constant": regions.workspace, "input": values, "value": values,
        }  # fmt: skip
        calls = builders[size].calls
        if backward:
            calls = calls + update_calls(regions, number, len(sizes), values + inputs_end, tiles)
        encoder = RowEncoder(number, starts, regions.place)
        tables = [encoder.table(calls, adds) for adds in ((False, True) if backward else (False,))]
        shares.append(Share(size, calls, builders[size].inputs, arena, encoder, tables))
    return Plan(shares, constants)


def _checked(groups: list[Group]) -> list[Group]:
    if not groups[-1].rule.is_loss:
        losses = ", ".join(sorted({rule.ends for rule in rules_of("train") if rule.is_loss}))
        end = groups[-1].nodes[-1].equation.name
        raise ConfigError(
            f"a plan must end in a loss that has kernels ({losses}), not in {end}. Use the numpy runtime."
        )
    return groups
