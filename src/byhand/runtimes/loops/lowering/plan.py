"""Plan: one step as tables of integers, one table for each share of the batch.

A share's table is its builder with every buffer's place filled in; where the builder has steps in Python (equations
without a kernel) the table is cut into segments around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.errors import ConfigError
from byhand.runtimes.loops.graph.record import record
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.fusion import emit_groups, groups_of
from byhand.runtimes.loops.lowering.ir import Call
from byhand.runtimes.loops.lowering.layout import place_by_lifetime, place_in_order
from byhand.runtimes.loops.lowering.rules import Rule, rules_of
from byhand.runtimes.loops.lowering.share import Share
from byhand.runtimes.loops.lowering.update import update_calls
from byhand.runtimes.loops.run.arena import Arena


@dataclass
class Plan:
    """A step for one shape: its shares, and how much workspace they need.

    constants   offset and value of each constant, see `write_constants`
    """

    name: str
    arena: Arena
    shares: list[Share]
    workspace: int
    constants: list[tuple[int, Any]]
    _segments: dict[tuple[int, bool, bool], list[tuple[int, int] | Call]] = field(default_factory=dict, repr=False)

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
        for place, value in self.constants:
            flat = np.ravel(value)
            self.arena.memory[place : place + flat.size] = flat

    def segments(self, share: Share, computes: bool = True, updates: bool = True) -> list[tuple[int, int] | Call]:
        """Return what a share runs in turn: stretches of its table, and the steps in Python between them.

        A table first computes loss and gradients; from its first barrier on it updates the parameters.
        """
        key = share.number, computes, updates
        if key not in self._segments:
            barrier = next((i for i, c in enumerate(share.calls) if c.kernel == "barrier"), len(share.calls))
            first, stop = 0 if computes else barrier, len(share.calls) if updates else barrier
            steps = [call if call.run else None for call in share.calls[:stop]]
            self._segments[key] = list(segments(steps, first))
        return self._segments[key]


def segments(steps: list[Call | None], first: int = 0) -> Iterator[tuple[int, int] | Call]:
    """Yield what to run in turn: stretches of a table from row `first` on, and the steps in Python between them.

    steps  for each row its step in Python; None for a kernel
    """
    for i, step in enumerate(steps[first:], first):
        if step is not None:
            if first < i:
                yield first, i
            yield step
            first = i + 1
    if first < len(steps):
        yield first, len(steps)


def split(batch: int, shares: int) -> list[int]:
    """Return how many rows each share takes: as equal as possible, none empty."""
    shares = min(shares, batch)
    return [batch // shares + (i < batch % shares) for i in range(shares)]


def make_plan(
    name: str,
    compute: Callable[..., Tensor],
    inputs: dict[str, tuple[int, ...]],
    arena: Arena,
    backward: bool,
    inputs_of_products: str = "float32",
    rules: tuple[Rule, ...] | None = None,
    tiles: bool = False,
) -> Plan:
    """Record compute(**inputs) for each size of share, and turn it into a plan.

    inputs give the whole batch's shapes, batch first. With `backward` the plan ends with the AdamW update.
    inputs_of_products "bfloat16" rounds what linear layers multiply.
    rules say which applications become one, those of training if not given; with `tiles` no BLAS multiplies float32.
    """
    sizes = split(next(iter(inputs.values()))[0], arena.shares)
    builders = {}
    for size in dict.fromkeys(sizes):
        arrays = {k: np.zeros((size, *shape[1:]), np.int64) for k, shape in inputs.items()}
        builders[size] = _build(
            compute, arrays, arena, backward, inputs_of_products, rules or rules_of("train"), tiles
        )
    constants: list[tuple[int, Any]] = []
    end, stride = 0, 0
    for builder in builders.values():
        buffers = [*builder.constants.values(), *(b for b, _ in builder.array_constants)]
        end = place_in_order(buffers, end)
        constants += [(arena.workspace + b.offset, value) for value, b in builder.constants.items()]
        constants += [(arena.workspace + b.offset, value) for b, value in builder.array_constants]
    for builder in builders.values():
        stride = max(stride, place_by_lifetime(builder.calls, place_in_order(builder.inputs.values())))
    shares = []
    for number, size in enumerate(sizes):
        values = arena.workspace + end + number * stride
        update = update_calls(arena, number, len(sizes)) if backward else []
        calls = builders[size].calls + update
        shares.append(Share(number, size, calls, builders[size].inputs, arena, arena.workspace, values))
    workspace = end + len(sizes) * stride
    arena.reserve(workspace)
    for share in shares:
        for adds in (False, True) if backward else (False,):
            share.tables.append(share.table(share.calls, adds))
    return Plan(name, arena, shares, workspace, constants)


def _build(
    compute: Callable[..., Tensor],
    arrays: dict[str, Any],
    arena: Arena,
    backward: bool,
    inputs_of_products: str,
    rules: tuple[Rule, ...],
    tiles: bool,
) -> Builder:
    builder = Builder(record(compute, **arrays), arena.parameters, inputs_of_products, tiles, trains=backward)
    groups = groups_of(builder.graph, rules)
    if not groups[-1].rule.is_loss:
        losses = ", ".join(sorted({rule.ends for rule in rules_of("train") if rule.is_loss}))
        end = groups[-1].nodes[-1].equation.name
        raise ConfigError(
            f"a plan must end in a loss that has kernels ({losses}), not in {end}. Use the numpy runtime."
        )
    emit_groups(builder, groups)
    for name, buffer in [*builder.parameter_buffers.items(), *builder.gradient_buffers.items()]:
        buffer.offset = arena.place[name]
    return builder
