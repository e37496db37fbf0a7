"""Generation plans: the calls of one token, and those that fill the cache, shared by threads that meet between calls.

In decoding every thread runs the same calls, each on its columns, heads or streams. In filling each call's rows are
split, so that one prompt keeps every core busy whatever BLAS multiplies. Which part of a result a thread computes
changes no number of it, so one thread that does all parts in turn gets the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from byhand.engine import Tensor
from byhand.errors import ConfigError
from byhand.runtimes.loops.graph.record import Graph, RecordedCache, record
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.fusion import DECODING, FILLING, Fusion, groups_of
from byhand.runtimes.loops.lowering.ir import OWN_SIGNAL, PART, PARTS, At, Buffer, Call, Operand
from byhand.runtimes.loops.lowering.layout import place_by_lifetime, place_in_order
from byhand.runtimes.loops.lowering.plan import Share
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.replay import OPCODES, WIDTH, ready_for

# Kernels of filling whose rows are independent: the operand that counts them, and how far each array moves for a row.
ROWS: dict[str, tuple[str, dict[str, str | int]]] = {
    "embed": ("steps", {"tokens": 1, "positions": "width", "out": "width"}),
    "normalise": ("rows", {"x": "width", "xhat": "width", "rstd": 1}),
    "scale_shift": ("rows", {"xhat": "width", "y": "width"}),
    "fill_bias": ("rows", {"y": "width"}),
    "fill_residual": ("rows", {"y": "width", "x": "width"}),
    "gemm": ("m", {"a": "lda", "c": "ldc"}),
    "tiled_gemm": ("m", {"a": "lda", "c": "ldc", "start": "ldc"}),
    "bias_gelu": ("rows", {"x": "width", "y": "width"}),
    "bias_relu": ("rows", {"x": "width"}),
    "copy": ("n", {"x": 1, "y": 1}),
}


class NoKernelError(ConfigError):
    """An equation of the model can be recorded, but no kernel of generation computes it."""


class Model(Protocol):
    """What plans are recorded from."""

    config: Any

    def parameters(self) -> dict[str, Tensor]:
        """Return the parameters by name."""
        ...

    def cache_shapes(self) -> list[tuple[int, int]]:
        """Return for each block the heads and the width of the keys, and of the values, that a cache keeps."""
        ...

    def logits_of(self, tokens: Any, cache: Any = None) -> Tensor:
        """Return logits (B, T, V) of an array of tokens that was checked."""
        ...


@dataclass
class GenerationPlan:
    """A table for each thread, and `alone`, with which a single thread does the work of all of them.

    preparations  a table of what runs once, before the plan ever does
    result        the logits, in decoding
    end           where the next plan's memory may begin, from the start of the workspace
    """

    builder: Builder
    shares: list[Share]
    tables: list[np.ndarray]
    alone: np.ndarray
    preparations: np.ndarray
    result: Buffer | None
    end: int

    def write_constants(self) -> None:
        """Put the constants into the arena; needed whenever another plan has used the place."""
        for value, buffer in self.builder.constants.items():
            self.shares[0].array(buffer)[:] = value


def decoding_plan(
    model: Model,
    arena: Arena,
    inputs: Mapping[str, Buffer],
    caches: list[tuple[Buffer, Buffer]],
    halves: bool,
) -> GenerationPlan:
    """Return the plan of one token of each stream, sampling included."""
    streams, vocab = inputs["tokens"].shape[0], model.config.vocab_size
    builder = Builder(
        _recorded(model, (streams, 1)), model.parameters(), inputs=dict(inputs), caches=caches, halves=halves
    )
    _emit(builder, arena, DECODING)
    logits = builder.result(builder.graph.nodes[-1])
    builder.emit(
        "sample", None, 0, logits=logits, allowed=inputs["allowed"], tokens=inputs["tokens"],
        position=inputs["position"], drawn=inputs["drawn"], order=Buffer("order", (2, vocab), "own", "int32"),
        rows=streams, vocab=vocab, part=PART, parts=PARTS,
    )  # fmt: skip
    builder.calls.append(_meet())
    calls = [[_divided(call, arena.shares) for call in builder.calls]] * arena.shares
    return _placed(builder, arena, calls, 0, logits)


def filling_plan(
    model: Model,
    arena: Arena,
    shape: tuple[int, int],
    caches: list[tuple[Buffer, Buffer]],
    start: int,
    tiles: bool,
) -> GenerationPlan:
    """Return the plan that fills the cache with prompts of this shape (B, T): it ends with the last layer's cache."""
    builder = Builder(_recorded(model, shape), model.parameters(), tiles=tiles, caches=caches)
    _emit(builder, arena, FILLING, last="attention")
    calls = [
        [c for call in builder.calls for c in (_part_of(call, part, arena.shares), _meet()) if c is not None]
        for part in range(arena.shares)
    ]
    return _placed(builder, arena, calls, start)


def _recorded(model: Model, shape: tuple[int, int]) -> Graph:
    return record(model.logits_of, RecordedCache(), tokens=np.zeros(shape, np.int64))


def _emit(builder: Builder, arena: Arena, fusions: tuple[Fusion, ...], last: str = "") -> None:
    groups = groups_of(builder.graph, fusions)
    if last:
        groups = groups[: 1 + max(i for i, group in enumerate(groups) if group.rule == last)]
    strange = next((group.nodes[-1] for group in groups if group.rule == "reference"), None)
    if strange is not None:
        raise NoKernelError(f"no kernel generates with {strange.equation.name}. Use the numpy runtime.")
    for group in groups:
        group.forward(builder, group)
    if builder.array_constants:
        raise NoKernelError(f"no kernel generates with {builder.array_constants[0][0].name}. Use the numpy runtime.")
    for name, buffer in builder.parameter_buffers.items():
        buffer.offset = arena.place[name]


def _placed(
    builder: Builder, arena: Arena, calls: list[list[Call]], start: int, result: Buffer | None = None
) -> GenerationPlan:
    """Give every buffer its place from `start` on; "own" ones get one for each thread."""
    inputs = (b for b in _touched([*builder.calls, *builder.preparations], "input") if b.offset < 0)
    end = place_in_order([*inputs, *builder.constants.values()], start)
    if result is None:
        end = place_by_lifetime(builder.calls, end)
    else:  # some calls are not followed by a barrier: the next must not write where another thread still reads
        end = place_in_order(_touched(builder.calls, "value"), end)
    own = place_in_order(_touched(builder.calls, "own"))
    base, parts = arena.workspace, arena.shares
    shares = [
        Share(i, 0, each, builder.inputs, arena, base, base, base + end + i * own, parts)
        for i, each in enumerate(calls)
    ]
    arena.reserve(end + parts * own)
    tables = [_table(share, share.calls) for share in shares]
    preparations = np.concatenate([_table(share, builder.preparations) for share in shares])
    ready_for([*tables, preparations])
    return GenerationPlan(builder, shares, tables, _in_turn(tables), preparations, result, end + parts * own)


def _in_turn(tables: list[np.ndarray]) -> np.ndarray:
    """Return the rows of all threads for one: what each does up to a barrier, thread after thread."""
    stretches = [np.split(table, np.flatnonzero(table[:, 0] == OPCODES["barrier"])) for table in tables]
    rows = np.concatenate([part for parts in zip(*stretches, strict=True) for part in parts])
    return rows[rows[:, 0] != OPCODES["barrier"]]


def _part_of(call: Call, part: int, parts: int) -> Call | None:
    """Return one thread's part of a call: its rows, or all if the kernel divides them itself, or nothing."""
    if "parts" in call.operands:
        return _divided(call, parts)
    if call.kernel not in ROWS or call.operands.get("batch", 1) != 1:
        return call if part == 0 else None
    counted, strides = ROWS[call.kernel]
    count = _integer(call.operands[counted])
    low, high = part * count // parts, (part + 1) * count // parts
    operands, touched = dict(call.operands) | {counted: high - low}, call.bytes
    for name, stride in strides.items():
        array = call.operands[name]
        if array == 0:
            continue  # a product without a start
        operands[name] = _moved(array, low * (stride if isinstance(stride, int) else _integer(operands[stride])))
        touched -= 4 * array.words * (count - high + low) // count if isinstance(array, Buffer) else 0
    return replace(call, operands=operands, flops=call.flops * (high - low) // count, touched=touched)


def _divided(call: Call, parts: int) -> Call:
    """Return the call with a thread's part of its cost, if its kernel divides the work itself."""
    if "parts" not in call.operands:
        return call
    return replace(call, flops=call.flops // parts, touched=call.bytes // parts)


def _integer(operand: Operand) -> int:
    assert isinstance(operand, int)
    return operand


def _moved(operand: Operand, by: int) -> Operand:
    if isinstance(operand, At):
        return At(operand.buffer, operand.start + by)
    assert isinstance(operand, Buffer)
    return At(operand, by)


def _meet() -> Call:
    """Wait for all threads: what they have written in parts is whole."""
    return Call("barrier", None, 0, {"own": OWN_SIGNAL, "shares": PARTS}, ())


def _touched(calls: list[Call], kind: str) -> list[Buffer]:
    """Return the buffers of this kind in the order in which calls touch them."""
    return list({id(b): b for call in calls for b in call.buffers if b.kind == kind}.values())


def _table(share: Share, calls: list[Call]) -> np.ndarray:
    return np.array([share.row(call, adds=False) for call in calls], np.int64).reshape(-1, WIDTH)
