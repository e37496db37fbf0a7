"""A gradient element by element: what each element of a result hands back to one element of an input.

A vjp is linear in the cotangent, so feeding it one element at a time gives that element's contribution, which is the
cotangent times the slope.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.engine import BackwardStep, Node, Tensor
from byhand.engine.arrays import namespace
from byhand.engine.terms import Index
from byhand.tracing.trace import Watched, moved


@dataclass(frozen=True, slots=True)
class Contribution:
    """cotangent x slope, where the cotangent is d loss / d `name`[`index`]; numbers of whatever type arrays hold."""

    name: str
    index: Index
    cotangent: Any
    slope: Any

    @property
    def value(self) -> float:
        """What it adds to the gradient."""
        return float(self.cotangent) * float(self.slope)


def contributions(step: BackwardStep, tensor: Tensor, index: Index, watched: Watched) -> Iterator[Contribution]:
    """Yield what one use of a tensor adds to the gradient of one of its elements; zero cotangents add nothing."""
    node = step.node
    slots = [k for k, t in enumerate(node.inputs) if t is tensor]
    if not slots:
        return
    names = watched.result_names(node)
    reached = _reached(node, slots, index)
    for which, (name, d) in enumerate(zip(names, step.d_results, strict=True)):
        for place in reached[which]:
            if d[place] == 0:
                continue
            alone = [namespace(x).zeros_like(x) for x in step.d_results]
            alone[which][place] = 1.0
            slopes = node.equation.vjp(node.saved, alone[0] if len(alone) == 1 else tuple(alone), **node.static)
            yield Contribution(name, place, d[place], sum(slopes[k][index] for k in slots))


def _reached(node: Node, slots: list[int], index: Index) -> list[list[Index]]:
    """Return which elements of each result change when the element does: only these contribute."""
    arrays = [np.asarray(t.data, dtype=np.float64) if t.data.dtype.kind in "fO" else t.data for t in node.inputs]

    def results(step: float) -> tuple[Any, ...]:
        changed = [moved(x, index, step) if k in slots else x for k, x in enumerate(arrays)]
        result, _ = node.equation.forward(*changed, **node.static)
        return result if isinstance(result, tuple) else (result,)

    with np.errstate(all="ignore"):  # a second moment below zero, say: only whether results change counts
        base, up, down = results(0.0), results(1.0), results(-1.0)
    found: list[list[Index]] = []
    for b, u, d in zip(base, up, down, strict=True):
        changed = (u != b) | (d != b)
        found.append([()] if b.ndim == 0 else [tuple(map(int, p)) for p in zip(*np.nonzero(changed), strict=True)])
    return found
