"""Generation plans: the calls of one token, and those that fill the cache, shared by threads that meet between calls.

In decoding every thread runs the same calls, each on its columns, heads or streams. In filling each call's rows are
split, so that one prompt keeps every core busy whatever BLAS multiplies. Which part of a result a thread computes
changes no number of it, so one thread that does all parts in turn gets the same bits. A plan with steps in Python
(equations without a kernel) is run in that way alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from byhand.engine import Node, Tensor
from byhand.errors import ConfigError
from byhand.runtimes.loops.graph.record import Graph, RecordedCache, record
from byhand.runtimes.loops.lowering.builder import Builder
from byhand.runtimes.loops.lowering.division import divided, in_turn, part_of
from byhand.runtimes.loops.lowering.fallback import FALLBACK
from byhand.runtimes.loops.lowering.fusion import emit_groups, groups_of
from byhand.runtimes.loops.lowering.ir import PART, PARTS, Buffer, Call, meet
from byhand.runtimes.loops.lowering.layout import place_by_lifetime, place_in_order
from byhand.runtimes.loops.lowering.plan import segments
from byhand.runtimes.loops.lowering.rules import Group, Stage, rules_of
from byhand.runtimes.loops.lowering.share import Share
from byhand.runtimes.loops.lowering.table import IN_PYTHON
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.replay import ready_for


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

    in_turn       what to run with `alone`: stretches of it, and the steps in Python between them
    preparations  a table of what runs once, before the plan ever does
    result        the logits, in decoding
    end           where the next plan's memory may begin, from the start of the workspace
    """

    builder: Builder
    shares: list[Share]
    tables: list[np.ndarray]
    alone: np.ndarray
    in_turn: list[tuple[int, int] | Call]
    preparations: np.ndarray
    result: Buffer | None
    end: int

    @property
    def has_python(self) -> bool:
        """Whether some steps run in Python."""
        return any(isinstance(part, Call) for part in self.in_turn)

    def write_constants(self) -> None:
        """Put the constants into the arena; needed whenever another plan has used the place."""
        for value, buffer in self.builder.constants.items():
            self.shares[0].array(buffer)[:] = value
        for buffer, value in self.builder.array_constants:
            self.shares[0].array(buffer)[...] = value


def decoding_plan(
    model: Model,
    arena: Arena,
    inputs: Mapping[str, Buffer],
    caches: list[tuple[Buffer, Buffer]],
    bfloat16_weights: bool,
) -> GenerationPlan:
    """Return the plan of one token of each stream, sampling included."""
    streams, vocab = inputs["tokens"].shape[0], model.config.vocab_size
    builder = Builder(
        _recorded(model, (streams, 1)), model.parameters(), inputs=dict(inputs), caches=caches,
        bfloat16_weights=bfloat16_weights,
    )  # fmt: skip
    groups = _groups(builder, "decode")
    _emit(builder, arena, groups)
    logits = builder.result(builder.graph.nodes[-1])
    builder.emit(
        "sample", None, 0, logits=logits, allowed=inputs["allowed"], tokens=inputs["tokens"],
        position=inputs["position"], drawn=inputs["drawn"], order=Buffer("order", (2, vocab), "own", "int32"),
        rows=streams, vocab=vocab, part=PART, parts=PARTS,
    )  # fmt: skip
    builder.meet()
    calls = [
        [c for call in builder.calls for c in _decoding_calls(call, part, arena.shares)]
        for part in range(arena.shares)
    ]
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
    groups = _groups(builder, "fill")
    cached = [i for i, group in enumerate(groups) if any(_reads_cache(node, builder.graph) for node in group.nodes)]
    _emit(builder, arena, groups[: 1 + max(cached, default=-1)])
    calls = [
        [c for call in builder.calls for c in (part_of(call, part, arena.shares), meet()) if c is not None]
        for part in range(arena.shares)
    ]
    return _placed(builder, arena, calls, start)


def _recorded(model: Model, shape: tuple[int, int]) -> Graph:
    return record(model.logits_of, RecordedCache(), tokens=np.zeros(shape, np.int64))


def _reads_cache(node: Node, graph: Graph) -> bool:
    return graph.cache is not None and any(graph.cache.holds(tensor) for tensor in node.inputs)


def _groups(builder: Builder, stage: Stage) -> list[Group]:
    """Return the groups; only attention's kernels can read the cache."""
    groups = groups_of(builder.graph, rules_of(stage))
    for group in groups:
        if group.rule is FALLBACK and _reads_cache(group.nodes[0], builder.graph):
            name = group.nodes[0].equation.name
            raise ConfigError(f"no kernel generates with {name} where it reads the KV cache. Use the numpy runtime.")
    return groups


def _emit(builder: Builder, arena: Arena, groups: list[Group]) -> None:
    emit_groups(builder, groups)
    for name, buffer in builder.parameter_buffers.items():
        buffer.offset = arena.place[name]


def _decoding_calls(call: Call, part: int, parts: int) -> list[Call]:
    """Return one thread's calls: a step in Python is the first thread's, with all others waiting."""
    if call.run is None:
        return [divided(call, parts)]
    return [meet(), *([call] if part == 0 else []), meet()]


def _placed(
    builder: Builder, arena: Arena, calls: list[list[Call]], start: int, result: Buffer | None = None
) -> GenerationPlan:
    """Give every buffer its place from `start` on; "own" ones get one for each thread."""
    inputs = (b for b in _touched([*builder.calls, *builder.preparations], "input") if b.offset < 0)
    constants = [*builder.constants.values(), *(buffer for buffer, _ in builder.array_constants)]
    end = place_in_order([*inputs, *constants], start)
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
    tables = [share.table(share.calls) for share in shares]
    preparations = np.concatenate([share.table(builder.preparations) for share in shares])
    ready_for([*tables, preparations])
    alone = in_turn(tables)
    steps = iter([call for call in shares[0].calls if call.run])
    stretches = list(segments([next(steps) if code == IN_PYTHON else None for code in alone[:, 0]]))
    return GenerationPlan(builder, shares, tables, alone, stretches, preparations, result, end + parts * own)


def _touched(calls: list[Call], kind: str) -> list[Buffer]:
    """Return the buffers of this kind in the order in which calls touch them."""
    return list({id(b): b for call in calls for b in call.buffers if b.kind == kind}.values())
