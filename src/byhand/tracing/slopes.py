"""Slopes of an equation without `gradient_terms`: each by a vjp with a one-hot cotangent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from byhand.engine import BackwardStep, Node
from byhand.engine.arrays import as_tuple, namespace
from byhand.engine.terms import Index

Slope = tuple[int, Index, Any]  # index of the result, index of its element, d result / d element
Arrays = Sequence[Any]


def slopes(step: BackwardStep, slot: int, index: Index) -> Iterator[Slope]:
    """Yield the slope of every element of the results that depends on one element of an input.

    Elements with a zero cotangent are left out.
    """
    node, inputs = step.node, in_float64([np.asarray(t.data) for t in step.node.inputs])
    with np.errstate(all="ignore"):  # such as a negative second moment
        base, up, down = (
            _forward(node, [perturbed(x, index, by) if k == slot else x for k, x in enumerate(inputs)])
            for by in (0.0, 1.0, -1.0)
        )
        reached = [
            ((more != x) | (less != x)) & np.asarray(d != 0)
            for x, more, less, d in zip(base, up, down, step.d_results, strict=True)
        ]
    for which, place in ((which, tuple(p)) for which, mask in enumerate(reached) for p in np.argwhere(mask).tolist()):
        alone = [namespace(x).zeros_like(x) for x in step.d_results]
        alone[which][place] = 1.0
        d_inputs = node.equation.vjp(node.saved, alone[0] if len(alone) == 1 else tuple(alone), **node.static)
        yield which, place, d_inputs[slot][index]


def perturbed(x: Any, index: Index, step: float) -> Any:
    """Return a copy of the array with `step` added to one element."""
    copy = namespace(x).asarray(x, copy=True)
    copy[index] += step
    return copy


def in_float64(arrays: Arrays) -> Arrays:
    """Return arrays of real numbers in float64, others unchanged."""
    return [x.astype(np.float64, copy=False) if x.dtype.kind in "fO" else x for x in arrays]


def _forward(node: Node, inputs: Arrays) -> Arrays:
    result, _ = node.equation.forward(*inputs, **node.static)
    return as_tuple(result)
