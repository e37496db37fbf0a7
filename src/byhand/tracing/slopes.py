"""Slopes: how much each element of an application's results changes with one element of an input.

They are a column of the Jacobian, where a vjp gives a row. One vjp for each element of the results always works, and
grows with them. Two properties that most equations have avoid it:

affine  Products, sums and lookups are affine in each input: forward at a unit vector less forward at zero is the
        column.
rows    LayerNorm and softmax work on each row alone: copies of one row, each with a one-hot cotangent of its own,
        give all of the row's slopes in one vjp.

No equation declares them. They are found by computing, and what they give must agree with the gradient; else the
slopes come from one vjp each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from byhand.engine import BackwardStep, Node
from byhand.engine.arrays import namespace
from byhand.engine.terms import Index
from byhand.errors import ShapeError
from byhand.tracing.tracer import perturbed

FAR = 2.0**60  # length of the unit vector: adding a bias to its products does not change a digit of them
CLOSE = 1e-4  # relative; above float32's rounding in long sums
NOISE = 1e-10  # relative to the largest result; above float64's rounding
LARGEST = 1 << 22  # elements of an array of copies

Slope = tuple[int, Index, Any]  # which result, which of its elements, d result / d element
Arrays = Sequence[Any]


def slopes(step: BackwardStep, slots: list[int], index: Index) -> Iterable[Slope]:
    """Return the slope of every element of the results that one element changes, without those of no cotangent.

    `slots` numbers the inputs in which the element's tensor stands.
    """
    inputs = tuple(np.asarray(t.data) for t in step.node.inputs)
    with np.errstate(all="ignore"):  # a second moment below zero, say
        base, *moved = _around(step.node, inputs, slots, index)
        changed = [(u != b) | (d != b) for b, u, d in zip(base, *moved, strict=True)]
        reached = _places(step, changed)
        exact = any(x.dtype.kind == "O" for x in inputs)  # a vjp keeps the form of exact numbers
        found = None
        if len(reached) > 1 and not exact:
            found = _affine(step, inputs, slots, index, (base, *moved)) or _rows(
                step, inputs, slots, index, reached, base
            )
    return _one_by_one(step, slots, index, reached) if found is None else found


def _around(node: Node, inputs: Arrays, slots: list[int], index: Index) -> list[Arrays]:
    """Return the results in float64 as they are, and with 1 added to the element and taken from it."""
    doubles = [x.astype(np.float64) if x.dtype.kind in "fO" else x for x in inputs]
    return [
        _forward(node, [perturbed(x, index, by) if k in slots else x for k, x in enumerate(doubles)])
        for by in (0.0, 1.0, -1.0)
    ]


def _affine(
    step: BackwardStep, inputs: Arrays, slots: list[int], index: Index, around: tuple[Arrays, ...]
) -> list[Slope] | None:
    """Return the slopes of results that are affine in the tensor; None where they are not."""
    zero = np.zeros_like(inputs[slots[0]])
    at_zero, at_unit = (
        _forward(step.node, [changed if k in slots else x for k, x in enumerate(inputs)])
        for changed in (zero, perturbed(zero, index, FAR))
    )
    columns = [(unit - nothing) / FAR for unit, nothing in zip(at_unit, at_zero, strict=True)]
    for column, base, up, down in zip(columns, *around, strict=True):
        slack = CLOSE * abs(column) + NOISE * (1.0 + abs(base).max(initial=0.0))
        if not ((abs(up - base - column) <= slack) & (abs(base - down - column) <= slack)).all():
            return None
    places = _places(step, [column != 0 for column in columns])
    return _agreeing([(which, place, columns[which][place]) for which, place in places], step, slots, index)


def _rows(
    step: BackwardStep,
    inputs: Arrays,
    slots: list[int],
    index: Index,
    reached: list[tuple[int, Index]],
    base: Arrays,
) -> list[Slope] | None:
    """Return the slopes of a result that works on each row, or matrix, of the tensor alone; else None."""
    x = inputs[slots[0]]
    if len(slots) > 1 or len(base) > 1:
        return None
    for depth in range(x.ndim - 1, 0, -1):
        row, inner = index[:depth], index[depth:]
        if any(place[:depth] != row for _, place in reached):
            continue
        found: list[Slope] = []
        count = max(1, LARGEST // x[row].size)
        for start in range(0, len(reached), count):
            some = [place for _, place in reached[start : start + count]]
            copies = [np.stack([x[row]] * len(some)) if k in slots else a for k, a in enumerate(inputs)]
            try:
                result, saved = step.node.equation.forward(*copies, **step.node.static)
            except (ShapeError, ValueError):
                break
            (whole,) = base
            expected = whole[row]
            if result.shape != (len(some), *expected.shape) or not np.allclose(result, expected, CLOSE, NOISE):
                break
            d = np.zeros_like(result)
            for copy, place in enumerate(some):
                d[(copy, *place[depth:])] = 1.0
            d_copies = step.node.equation.vjp(saved, d, **step.node.static)[slots[0]]
            found += [(0, place, d_copies[(copy, *inner)]) for copy, place in enumerate(some)]
        else:
            return _agreeing(found, step, slots, index)
    return None


def _one_by_one(
    step: BackwardStep, slots: list[int], index: Index, reached: list[tuple[int, Index]]
) -> Iterator[Slope]:
    """Yield each slope by a vjp of its own."""
    node = step.node
    for which, place in reached:
        alone = [namespace(x).zeros_like(x) for x in step.d_results]
        alone[which][place] = 1.0
        d_inputs = node.equation.vjp(node.saved, alone[0] if len(alone) == 1 else tuple(alone), **node.static)
        yield which, place, sum(d_inputs[k][index] for k in slots)


def _agreeing(found: list[Slope], step: BackwardStep, slots: list[int], index: Index) -> list[Slope] | None:
    """Return the slopes if cotangents times slopes add up to the gradient, up to rounding."""
    parts = [float(step.d_results[which][place]) * float(slope) for which, place, slope in found]
    gradient = math.fsum(float(d[index]) for k in slots if (d := step.d_inputs[k]) is not None)
    scale = math.fsum(map(abs, parts))
    return found if abs(math.fsum(parts) - gradient) <= CLOSE * scale else None


def _places(step: BackwardStep, wanted: Iterable[Any]) -> list[tuple[int, Index]]:
    """Return the elements of the results that are wanted and have a cotangent."""
    return [
        (which, tuple(place))
        for which, (mask, d) in enumerate(zip(wanted, step.d_results, strict=True))
        for place in np.argwhere(np.asarray(mask) & np.asarray(d != 0)).tolist()
    ]


def _forward(node: Node, inputs: list[Any]) -> Arrays:
    result, _ = node.equation.forward(*inputs, **node.static)
    return result if isinstance(result, tuple) else (result,)
