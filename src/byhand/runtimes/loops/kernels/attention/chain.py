"""Chain: the applications from the packed projection to the merged heads, which attention's kernels compute together.

    split_qkv -> [rms_norm] -> [rotary] -> (cache) -> [repeat_heads]
              -> attention_scores -> a softmax -> mix -> merge_heads

Norm and rotation are of queries and keys alike, repetition of keys and values. Anything else is no chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byhand.runtimes.loops.pattern.rules import Group
from byhand.runtimes.loops.program.builder import Builder

SOFTMAXES = ("causal_softmax", "softmax", "window_softmax")
EVERY = 1 << 30  # a window that cuts nothing off

Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Chain:
    """The applications, in order; those in brackets above as pairs, or None.

    layer  whose cache the keys and values came through; None without a cache
    """

    split: Any
    norms: Pair | None
    turns: Pair | None
    repeats: Pair | None
    scores: Any
    softmax: Any
    mix: Any
    merge: Any
    layer: int | None

    @property
    def nodes(self) -> tuple[Any, ...]:
        """All applications, each after those that it needs."""
        pairs = [node for pair in (self.norms, self.turns, self.repeats) if pair for node in pair]
        return (self.split, *pairs, self.scores, self.softmax, self.mix, self.merge)

    @property
    def sizes(self) -> dict[str, int]:
        """Return the sizes by which kernels know them; `times` query heads share a head of keys and values."""
        batch, heads, steps, width = self.mix.results[0][0]
        return {
            "batch": batch, "heads": heads, "times": heads // self.kv_heads, "steps": steps, "width": width,
            "causal": int(self.softmax.equation.name != "softmax"),
            "window": self.softmax.static.get("window", EVERY),
        }  # fmt: skip

    @property
    def kv_heads(self) -> int:
        """K, the heads of keys and values."""
        return self.split.results[1][0][1]

    @property
    def prepared(self) -> tuple[Any, ...]:
        """The applications of norm and rotation."""
        return (*(self.norms or ()), *(self.turns or ()))


def chain_of(merge: Any, graph: Any) -> Chain | None:
    """Return the chain that ends in this application, if every result inside has one reader."""
    mix = graph.only(merge.inputs[0], "mix")
    softmax = mix and graph.only(mix.inputs[0], *SOFTMAXES)
    scores = softmax and graph.only(softmax.inputs[0], "attention_scores")
    if not scores:
        return None
    q, k, v = (_followed(tensor, graph) for tensor in (*scores.inputs, mix.inputs[1]))
    if not q.start.node or any(graph.only(s.start, "split_qkv") is not q.start.node for s in (q, k, v)):
        return None
    if [s.start.index for s in (q, k, v)] != [0, 1, 2] or (q.layer, k.layer) != (None, v.layer):
        return None
    pairs = (q.norm, k.norm), (q.turn, k.turn), (k.repeat, v.repeat)
    if q.repeat or v.norm or v.turn or not all(_alike(*pair) for pair in pairs):
        return None
    if q.turn and any(graph.input_name(t) != "position" for node in pairs[1] for t in node.inputs[1:]):
        return None
    norms, turns, repeats = (pair if pair[0] else None for pair in pairs)
    return Chain(q.start.node, norms, turns, repeats, scores, softmax, mix, merge, k.layer)


def chain_in(builder: Builder, group: Group) -> Chain:
    """Return a group's chain."""
    found = chain_of(group.nodes[-1], builder.graph)
    assert found
    return found


@dataclass(frozen=True)
class _Side:
    """What was applied to queries, keys or values, last to first, and the tensor that it was applied to."""

    repeat: Any
    layer: int | None
    turn: Any
    norm: Any
    start: Any


def _followed(tensor: Any, graph: Any) -> _Side:
    repeat = graph.only(tensor, "repeat_heads")
    tensor, layer = graph.stored(repeat.inputs[0] if repeat else tensor)
    turn = graph.only(tensor, "rotary")
    tensor = turn.inputs[0] if turn else tensor
    norm = graph.only(tensor, "rms_norm")
    return _Side(repeat, layer, turn, norm, norm.inputs[0] if norm else tensor)


def _alike(one: Any, other: Any) -> bool:
    """Return whether neither is there, or both, with the same settings and as many inputs."""
    if not one or not other:
        return one is other
    return one.static == other.static and len(one.inputs) == len(other.inputs)
