"""Plan: one step as tables of integers, one table for each share of the batch.

A share's table is its builder with every buffer's place filled in; where the builder has steps in Python (equations
without a kernel) the table is cut into segments around them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byhand.engine import Tensor
from byhand.errors import ConfigError
from byhand.runtimes.loops.graph.record import record
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.fusion import FUSIONS, Fusion, ends_in_a_loss, groups_of
from byhand.runtimes.loops.lowering.ir import OWN_SIGNAL, At, Buffer, Call, Late, Operand
from byhand.runtimes.loops.lowering.layout import ALIGN, place_by_lifetime, place_in_order
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.replay import FIELDS, OPCODES, WIDTH

# Slots of the controls, as kernels.adamw lists them; from CONTROLS on two for each share: loss, sum of squares.
(WEIGHT, RATE, BETA1, BETA2, EPS, CORRECTION1, CORRECTION2, MAX_NORM, NORM, MATRIX_DECAY, VECTOR_DECAY, GIVEN_UP,
 APPLIED, CONTROLS) = range(14)  # fmt: skip
BARRIERS = 2  # in the update: before gradients are summed, and before they are applied


def own_signal(number: int) -> int:
    """Return where a share counts the barriers it has passed: each on a cache line of its own."""
    return 8 * (number + 1)


@dataclass
class Share:
    """One thread's part of a plan: how many rows of the batch, where its memory begins, what it runs."""

    number: int
    batch: int
    calls: list[Call]
    inputs: dict[str, Buffer]
    arena: Arena
    constants: int
    values: int
    own: int = 0
    parts: int = 1
    saved: dict[int, Any] = field(default_factory=dict)
    adds: bool = False  # this step has written to the share's gradients already
    tables: list[np.ndarray] = field(default_factory=list)  # one that writes gradients, and one that adds to them

    def address(self, buffer: Buffer) -> int:
        """Return the offset of a buffer's first element in the arena."""
        match buffer.kind:
            case "parameter":
                return buffer.offset
            case "gradient":
                return self.arena.gradients + self.number * self.arena.region + buffer.offset
            case "constant":
                return self.constants + buffer.offset
            case "own":
                return self.own + buffer.offset
            case _:
                return self.values + buffer.offset

    def array(self, buffer: Buffer) -> np.ndarray:
        """Return the buffer's numbers, in place."""
        return self.arena.array(self.address(buffer), buffer.shape, buffer.dtype == "int32")

    def row(self, call: Call, adds: bool) -> list[int]:
        """Return the call as numbers."""
        if call.run is not None:
            return [-1] + [0] * (WIDTH - 1)
        numbers = [self._number(call.operands[name], adds) for name in FIELDS[call.kernel]]
        return [OPCODES[call.kernel], *numbers] + [0] * (WIDTH - 1 - len(numbers))

    def _number(self, operand: Operand, adds: bool) -> int:
        if isinstance(operand, Buffer):
            return self.address(operand)
        if isinstance(operand, At):
            return self.address(operand.buffer) + operand.words
        if isinstance(operand, Late):
            return {
                "adds": int(adds),
                "loss slot": CONTROLS + 2 * self.number,
                "part": self.number,
                "parts": self.parts,
                "own signal": own_signal(self.number),
            }[operand.name]
        return int(operand)


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
            self._segments[key] = list(_segments(share.calls, computes, updates))
        return self._segments[key]


def _segments(calls: list[Call], computes: bool, updates: bool) -> Iterator[tuple[int, int] | Call]:
    first, stop = 0, len(calls)
    if not (computes and updates):
        barrier = next((i for i, c in enumerate(calls) if c.kernel == "barrier"), len(calls))
        first, stop = 0 if computes else barrier, len(calls) if updates else barrier
    for i, call in enumerate(calls[first:stop], first):
        if call.run is not None:
            if first < i:
                yield first, i
            yield call
            first = i + 1
    if first < stop:
        yield first, stop


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
    rules: tuple[Fusion, ...] = FUSIONS,
    tiles: bool = False,
) -> Plan:
    """Record compute(**inputs) for each size of share, and turn it into a plan.

    inputs give the whole batch's shapes, batch first. With `backward` the plan ends with the AdamW update.
    inputs_of_products "bfloat16" rounds what linear layers multiply.
    rules say which applications become one (see `groups.py`); with `tiles` no BLAS multiplies float32.
    """
    sizes = split(next(iter(inputs.values()))[0], arena.shares)
    builders = {}
    for size in dict.fromkeys(sizes):
        arrays = {k: np.zeros((size, *shape[1:]), np.int64) for k, shape in inputs.items()}
        builders[size] = _build(compute, arrays, arena, backward, inputs_of_products, rules, tiles)
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
        update = _update_calls(arena, number, len(sizes)) if backward else []
        calls = builders[size].calls + update
        shares.append(Share(number, size, calls, builders[size].inputs, arena, arena.workspace, values))
    workspace = end + len(sizes) * stride
    arena.reserve(workspace)
    for share in shares:
        for adds in (False, True) if backward else (False,):
            rows = [share.row(call, adds) for call in share.calls]
            share.tables.append(np.array(rows, np.int64).reshape(-1, WIDTH))
    return Plan(name, arena, shares, workspace, constants)


def _build(
    compute: Callable[..., Tensor],
    arrays: dict[str, Any],
    arena: Arena,
    backward: bool,
    inputs_of_products: str,
    rules: tuple[Fusion, ...],
    tiles: bool,
) -> Builder:
    builder = Builder(record(compute, **arrays), arena.parameters, inputs_of_products, tiles, trains=backward)
    groups = groups_of(builder.graph, rules)
    if not ends_in_a_loss(groups):
        end = groups[-1].nodes[-1].equation.name
        raise ConfigError(f"a plan must end in cross_entropy of logits, not in {end}. Use the numpy runtime.")
    for group in groups:
        group.forward(builder, group)
    for group in reversed(groups) if backward else ():
        group.backward(builder, group)
    for name, buffer in [*builder.parameter_buffers.items(), *builder.gradient_buffers.items()]:
        buffer.offset = arena.place[name]
    return builder


def _update_calls(arena: Arena, number: int, shares: int) -> list[Call]:
    """Return the calls that sum, measure and apply the gradients of this thread's range of the parameters."""
    size = math.ceil(arena.region / shares / ALIGN) * ALIGN
    first, last = min(number * size, arena.region), min((number + 1) * size, arena.region)
    calls: list[Call] = []

    def emit(kernel: str, flops: int, **operands: Operand) -> None:
        calls.append(Call(kernel, None, flops, operands, ()))

    emit("barrier", 0, own=OWN_SIGNAL, shares=shares)
    emit(
        "sum_shares", (shares + 1) * (last - first), gradient=arena.gradients + first, stride=arena.region,
        shares=shares, n=last - first, slot=CONTROLS + 2 * number + 1,
    )  # fmt: skip
    emit("barrier", 0, own=OWN_SIGNAL, shares=shares)
    ranges = (
        (first, min(last, arena.matrices_end), MATRIX_DECAY),
        (max(first, arena.matrices_end), last, VECTOR_DECAY),
    )
    for start, stop, decay in ranges:
        if start < stop:
            emit(
                "adamw", 14 * (stop - start), theta=start, gradient=arena.gradients + start,
                m=arena.first_moments + start, v=arena.second_moments + start, n=stop - start, decay=decay,
                slot=CONTROLS + 1, shares=shares,
            )  # fmt: skip
    return calls
