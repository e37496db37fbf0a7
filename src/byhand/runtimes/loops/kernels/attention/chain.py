"""Chain: the applications from the packed projection to the merged heads, which attention's kernels compute together.

The rules' patterns name them. Norm and rotation apply to queries and keys, cache and repetition to keys and values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from byhand.engine.graph.record import Graph
from byhand.runtimes.loops.pattern.rules import Group
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Buffer

NORMS = ("rms_norm", "heads_rms_norm")
PAIRS = (*NORMS, "rotary", "extend_cache", "repeat_heads")  # of queries and keys, or of keys and values
EVERY = 1 << 30  # no window

Pair = tuple[Any, ...]


@dataclass(frozen=True)
class Chain:
    """The applications, in order; those of PAIRS as pairs, or None."""

    split: Any
    norms: Pair | None
    rotations: Pair | None
    caches: Pair | None
    repeats: Pair | None
    scores: Any
    softmax: Any
    mix: Any
    merge: Any

    @property
    def sizes(self) -> dict[str, int]:
        """Return the sizes by the kernels' names; `group_size` query heads share a key-value head."""
        batch, heads, steps, width = self.mix.results[0][0]
        return {
            "batch": batch, "heads": heads, "group_size": heads // self.kv_heads, "steps": steps, "width": width,
            "causal": int(self.softmax.equation.name != "softmax"),
            "window": self.softmax.static.get("window", EVERY),
        }  # fmt: skip

    @property
    def kv_heads(self) -> int:
        """K, the number of key-value heads."""
        return self.split.results[1][0][1]

    @property
    def prepared(self) -> tuple[Any, ...]:
        """The applications of norm and rotation."""
        return (*(self.norms or ()), *(self.rotations or ()))


def chain_in(builder: Builder, group: Group) -> Chain:
    """Return a group's chain."""
    of_each, of_all, rotations, caches, repeats = (group.of(name) or None for name in PAIRS)
    (split,), (scores,), (mix,) = (group.of(name) for name in ("split_qkv", "attention_scores", "mix"))
    return Chain(
        split, of_each or of_all, rotations, caches, repeats, scores, mix.inputs[0].node, mix, group.nodes[-1]
    )


def scale_in(builder: Builder, chain: Chain) -> Buffer | int:
    """Return the buffer of the factor of scores; 0 for the default, 1 / sqrt(width)."""
    divisor = chain.scores.static.get("divisor")
    return 0 if divisor is None else builder.constant(1.0 / math.sqrt(divisor))


def alike(group: Group, graph: Graph) -> bool:
    """Return whether each pair is complete, with equal settings, or absent."""
    return all(_same(group.of(name)) for name in PAIRS)


def _same(pair: tuple[Any, ...]) -> bool:
    if len(pair) != 2:
        return not pair
    one, other = pair
    return one.static == other.static and len(one.inputs) == len(other.inputs)
