"""Generation plans: the calls of one token, and of prefill, divided among threads with barriers in between.

In decoding every thread runs the same calls, each on its columns, heads or streams: a kernel divides its work by
`part` and `parts`. Prefill divides each call's independent rows (declared by the kernel), so that one prompt keeps
every core busy. A result does not depend on the thread that computes it, so one thread that does all parts in turn
gets the same bits. Plans with steps in Python (equations without a kernel) always run that way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byhand.engine import Node, Tensor
from byhand.engine.graph.outline import Outline
from byhand.engine.graph.record import Graph, record
from byhand.errors import ConfigError
from byhand.formats.registry import Format
from byhand.layers.cache import KVCache
from byhand.runtimes.loops.encode.tables import RowEncoder
from byhand.runtimes.loops.kernels.largest_logits import room_of
from byhand.runtimes.loops.lower.fusion import FALLBACK, emit_groups, groups_of, rules_of
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.pattern.rules import Group, Stage
from byhand.runtimes.loops.place import place_by_lifetime, place_in_order
from byhand.runtimes.loops.program.builder import Builder, Preparation
from byhand.runtimes.loops.program.calls import PART, PARTS, Buffer, Call, Operand, Place, barrier
from byhand.runtimes.loops.run.arena import Arena
from byhand.runtimes.loops.run.plan import Plan
from byhand.runtimes.loops.run.share import Share


@dataclass
class Emitted:
    """A plan's calls for each thread, not placed yet; `result` has the logits, in decoding or if it scores."""

    builder: Builder
    calls: list[list[Call]]
    result: Buffer | None = None

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters that are read unpacked."""
        return [buffer.name for buffer in _touched(self.builder.calls, "parameter")]


@dataclass(kw_only=True)
class GenerationPlan(Plan):
    """A share for each thread, and `alone`, with which one thread does all the work.

    preparations  what packs pieces of a parameter, by its name, each with its thread and that one's table
    result        the logits, in decoding or if it scores
    end           where the next plan's memory may begin, from the start of the workspace
    """

    builder: Builder
    alone: Share
    preparations: dict[str, list[tuple[Preparation, Share, np.ndarray]]]
    result: Buffer | None
    end: int

    @property
    def has_python(self) -> bool:
        """Whether some steps run in Python."""
        return any(isinstance(part, Call) for part in self.parts(self.alone))


def decoding(
    model: Any, inputs: Mapping[str, Buffer], caches: dict[str, Buffer], weights: Format, parts: int
) -> Emitted:
    """Return the calls of one token of each stream, sampling included."""
    streams, vocab = inputs["tokens"].shape[0], model.config.vocab_size
    builder = Builder(
        _recorded(model, (streams, 1), model.config.cached), model.parameters(), inputs={**inputs, **caches},
        cached=model.config.cached, weights=weights, decodes=True, packed={},
    )  # fmt: skip
    groups = _groups(builder, "decode")
    emit_groups(builder, groups)
    logits = builder.result(builder.graph.nodes[-1])
    builder.emit(
        "sample", None, 0, logits=logits, allowed=inputs["allowed"], occurred=inputs["occurred"],
        tokens=inputs["tokens"], position=inputs["position"], steps=inputs["steps"], drawn=inputs["drawn"],
        room=Buffer("room", (room_of(vocab) + vocab,), "own", "int32"), rows=streams,
        longest=inputs["drawn"].shape[0], vocab=vocab, part=PART, parts=PARTS,
    )  # fmt: skip
    builder.barrier()
    calls = [[c for call in builder.calls for c in _decoding_calls(call, part, parts)] for part in range(parts)]
    return Emitted(builder, calls, logits)


def filling(
    model: Any, inputs: Mapping[str, Buffer], length: int, decoder: Builder, parts: int, scores: bool = False
) -> Emitted:
    """Return the calls that fill a stream's part of the caches with a prompt: they end with the last layer's cache.

    inputs   with the positions, if they do not begin at 0
    decoder  of the plan of one token, whose packed weights these calls read too
    scores   they go on to the logits of all positions
    """
    continues = "position" in inputs
    graph = _recorded(model, (1, length), model.config.cached if continues else length)
    builder = Builder(
        graph, model.parameters(), inputs=dict(inputs), cached=model.config.cached,
        weights=decoder.weights, packed=decoder.packed, continues=continues,
    )  # fmt: skip
    groups = _groups(builder, "fill")
    extending = [i for i, group in enumerate(groups) if any(map(_extends, group.nodes))]
    emit_groups(builder, groups if scores else groups[: 1 + max(extending, default=-1)])
    logits = builder.result(builder.graph.nodes[-1]) if scores else None
    calls = [
        [c for call in builder.calls for c in (part_of(call, part, parts), barrier()) if c is not None]
        for part in range(parts)
    ]
    return Emitted(builder, calls, logits)


def cache_names(model: Any) -> list[tuple[str, str]]:
    """Return the names of each block's keys and values among the inputs of a graph."""
    return [(f"blocks.{i}.keys", f"blocks.{i}.values") for i in range(len(model.cache_shapes()))]


def _recorded(model: Any, shape: tuple[int, int], places: int) -> Graph:
    """Record the model with a cache of `places` places. A fill from position 0 needs only its own length."""
    names = cache_names(model)
    outlines = {
        name: Outline((shape[0], heads, places, width), np.float32)
        for pair, (heads, width) in zip(names, model.cache_shapes(), strict=True)
        for name in pair
    }

    def compute(tokens: Any, position: Any, *_: Any) -> Tensor:
        kept = {name: Tensor(outline, requires_grad=True, name=name) for name, outline in outlines.items()}
        logits, _ = model.forward(tokens, KVCache(tuple((kept[k], kept[v]) for k, v in names), position))
        return logits

    return record(compute, tokens=np.zeros(shape, np.int64), position=np.zeros(shape[:1], np.int64), **outlines)


def _extends(node: Node) -> bool:
    return node.equation.name == "extend_cache"


def _groups(builder: Builder, stage: Stage) -> list[Group]:
    """Return the groups; only attention's kernels can read the cache."""
    groups = groups_of(builder.graph, rules_of(stage))
    for group in groups:
        if group.rule is FALLBACK and _extends(group.nodes[0]):
            where = _between(group.nodes[0], builder.graph, stage)
            raise ConfigError(f"no kernel generates with {where}. Use the numpy runtime.")
    return groups


def _between(node: Node, graph: Graph, stage: Stage) -> str:
    """Return the application after `node` that prevents attention's kernels from matching, else `node`."""
    rules = [rule for rule in rules_of(stage) if node.equation.name in rule.names]
    names, ends = {name for rule in rules for name in rule.names}, {rule.ends for rule in rules}
    before, after = node, graph.only_reader(node)
    while after is not None and before.equation.name not in ends:
        if after.equation.name not in names:
            reader = graph.only_reader(after)
            behind = f" and {reader.equation.name}" if reader else ""
            return f"{after.equation.name} {'between' if reader else 'behind'} {before.equation.name}{behind}"
        before, after = after, graph.only_reader(after)
    return f"{node.equation.name} where it reads the KV cache"


def _decoding_calls(call: Call, part: int, parts: int) -> list[Call]:
    """Return one thread's calls: the first thread runs steps in Python, between two barriers."""
    if call.step is None:
        return [divided(call, parts)]
    return [barrier(), call] if part == 0 else [barrier()]


def part_of(call: Call, part: int, parts: int) -> Call | None:
    """Return one thread's part of a call: its rows, or all if the kernel divides them itself, or nothing."""
    if "parts" in call.operands:
        return divided(call, parts)
    kernel = KERNELS.get(call.kernel)
    if kernel is None or not kernel.rows or call.operands.get("batch", 1) != 1:
        return call if part == 0 else None
    count = _integer(call.operands[kernel.rows])
    low, high = part * count // parts, (part + 1) * count // parts
    operands, touched = dict(call.operands) | {kernel.rows: high - low}, call.bytes
    for name, stride in kernel.moves.items():
        array = call.operands[name]
        if isinstance(array, Place):  # an optional array may be absent
            operands[name] = array.at(low * (stride if isinstance(stride, int) else _integer(operands[stride])))
            touched -= 4 * array.words * (count - high + low) // count if isinstance(array, Buffer) else 0
    return replace(call, operands=operands, flops=call.flops * (high - low) // count, touched=touched)


def divided(call: Call, parts: int) -> Call:
    """Return the call with one thread's part of its cost, if its kernel divides the work itself."""
    if "parts" not in call.operands:
        return call
    return replace(call, flops=call.flops // parts, touched=call.bytes // parts)


def _integer(operand: Operand) -> int:
    assert isinstance(operand, int)
    return operand


def in_turn(shares: list[Share]) -> Share:
    """Return a share with all threads' calls: segment by segment between barriers, thread by thread."""
    turns: list[tuple[int, Call, np.ndarray]] = []
    for share in shares:
        met = 0
        for call, row in zip(share.calls, share.tables[0], strict=True):
            if call.kernel == "barrier":
                met += 1
            else:
                turns.append((met, call, row))
    turns.sort(key=lambda turn: turn[0])
    return replace(shares[0], calls=[call for _, call, _ in turns], tables=[np.array([row for *_, row in turns])])


def placed(emitted: Emitted, arena: Arena, start: int = 0) -> GenerationPlan:
    """Allocate every buffer from `start` on; "own" buffers per thread, and staging where the next plan begins."""
    builder, result = emitted.builder, emitted.result
    staged = [each.call for each in builder.preparations]
    inputs = (b for b in _touched([*builder.calls, *staged], "input") if b.offset < 0)
    end = place_in_order([*inputs, *(buffer for buffer, _ in builder.constants.values())], start)
    if result is None:
        end = place_by_lifetime(builder.calls, end)
    else:  # without a barrier after some calls, the next must not write where another thread still reads
        end = place_in_order(_touched(builder.calls, "value"), end)
    own = place_in_order(_touched(builder.calls, "own"))
    regions = arena.regions
    base, parts = regions.workspace, regions.shares
    starts = {"parameter": 0, "constant": base, "input": base, "value": base}
    whole, staging = end + parts * own, max((place_in_order([b]) for b in _touched(staged, "staging")), default=0)
    arena.reserve(whole + parts * staging)
    shares = []
    for i, each in enumerate(emitted.calls):
        of_thread = {"own": base + end + i * own, "staging": base + whole + i * staging}
        encoder = RowEncoder(i, starts | of_thread, regions.place, parts)
        shares.append(Share(0, each, builder.inputs, arena, encoder, [encoder.table(each)]))
    preparations: dict[str, list[tuple[Preparation, Share, np.ndarray]]] = {}
    for each in builder.preparations:
        of_name = preparations.setdefault(each.name, [])
        share = shares[len(of_name) % parts]
        of_name.append((each, share, share.encoder.table([each.call])))
    return GenerationPlan(
        shares, list(builder.constants.values()), builder=builder, alone=in_turn(shares),
        preparations=preparations, result=result, end=whole,
    )  # fmt: skip


def _touched(calls: list[Call], kind: str) -> list[Buffer]:
    """Return the buffers of this kind in the order of first use."""
    return list(dict.fromkeys(b for call in calls for b in call.buffers if b.kind == kind))
