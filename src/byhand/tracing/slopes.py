"""Slopes: the derivative of each element of an application's results with respect to one element of an input.

They are a column of the Jacobian; a vjp gives a row. One vjp for each element of the results always works, but is
slow. Two properties of most equations avoid that:

affine  Products, sums and lookups are affine in each input: forward at a unit vector less forward at zero is the
        column.
rows    LayerNorm and softmax work on each row alone: copies of one row, each with another one-hot cotangent,
        give all of the row's slopes in one vjp.

Equations do not declare these properties: if the slopes that follow from one disagree with the gradient, each
slope takes its own vjp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from byhand.engine import BackwardStep, Node
from byhand.engine.arrays import namespace
from byhand.engine.terms import Index
from byhand.errors import ShapeError

FAR = 2.0**60  # length of the unit vector: adding a bias to its products does not change a digit of them
NOISE = 1e-10  # of the largest result: float64's rounding of a difference
ROUNDED = 64  # times the precision: the rounding of one number
SUMMED = 2048  # the same for a long sum
LARGEST = 1 << 22  # elements of an array of copies

Slope = tuple[int, Index, Any]  # which result, which of its elements, d result / d element
Arrays = Sequence[Any]


def slopes(step: BackwardStep, slots: list[int], index: Index) -> Iterator[Slope]:
    """Yield the slope of every element of the results that one element changes, except where the cotangent is zero.

    `slots` numbers the inputs that are the element's tensor.
    """
    inputs = [np.asarray(t.data) for t in step.node.inputs]
    with np.errstate(all="ignore"):  # a second moment below zero, say
        around = _around(step.node, inputs, slots, index)
        reached = [
            ((up != base) | (down != base)) & np.asarray(d != 0)
            for base, up, down, d in zip(*around, step.d_results, strict=True)
        ]
        columns = None
        exact = any(x.dtype.kind == "O" for x in inputs)  # a vjp keeps the form of exact numbers
        if sum(map(np.count_nonzero, reached)) > 1 and not exact:
            columns = _affine(step, inputs, slots, index, around) or _rows(step, inputs, slots, index, reached)
    if columns is None:
        yield from _one_by_one(step, slots, index, reached)
        return
    for which, (column, mask, d) in enumerate(zip(columns, reached, step.d_results, strict=True)):
        for place in _places(mask | (column != 0) & np.asarray(d != 0)):
            yield which, place, column[place]


def _around(node: Node, inputs: Arrays, slots: list[int], index: Index) -> list[Arrays]:
    """Return the results in float64 as they are, and with 1 added to the element and taken from it."""
    doubles = in_float64(inputs)
    return [
        _forward(node, [perturbed(x, index, by) if k in slots else x for k, x in enumerate(doubles)])
        for by in (0.0, 1.0, -1.0)
    ]


def _affine(
    step: BackwardStep, inputs: Arrays, slots: list[int], index: Index, around: Sequence[Arrays]
) -> Arrays | None:
    """Return the column of each result if all are affine in the tensor, else None."""

    def columns(arrays: Arrays) -> Arrays:
        zero = np.zeros_like(arrays[slots[0]])
        at_zero, at_unit = (
            _forward(step.node, [changed if k in slots else x for k, x in enumerate(arrays)])
            for changed in (zero, perturbed(zero, index, FAR))
        )
        return [(unit - nothing) / FAR for unit, nothing in zip(at_unit, at_zero, strict=True)]

    expected = columns(in_float64(inputs))
    for column, base, up, down in zip(expected, *around, strict=True):
        slack = ROUNDED * np.finfo(np.float64).eps * abs(column) + NOISE * abs(base).max(initial=0.0)
        if not ((abs(up - base - column) <= slack) & (abs(base - down - column) <= slack)).all():
            return None
    found = expected if inputs[slots[0]].dtype == np.float64 else columns(inputs)
    return found if _agree(found, step, slots, index) else None


def _rows(step: BackwardStep, inputs: Arrays, slots: list[int], index: Index, reached: Arrays) -> Arrays | None:
    """Return the column of a result that works on each row, or matrix, of the tensor alone, else None."""
    if len(slots) > 1 or len(reached) > 1:
        return None
    node, (slot,) = step.node, slots
    x, places = inputs[slot], _places(reached[0])
    (whole,) = _forward(node, inputs)
    precision = ROUNDED * np.finfo(whole.dtype).eps
    for depth in range(x.ndim - 1, 0, -1):
        row = index[:depth]
        if any(place[:depth] != row for place in places):
            continue
        column = np.zeros_like(whole)
        count = max(1, LARGEST // x[row].size)
        for some in (places[start : start + count] for start in range(0, len(places), count)):
            copies = np.stack([x[row]] * len(some))
            try:
                result, saved = node.equation.forward(*inputs[:slot], copies, *inputs[slot + 1 :], **node.static)
            except (ShapeError, ValueError):
                break
            alone = result.shape[1:] == whole[row].shape and np.allclose(result, whole[row], precision, precision)
            if not alone or len(result) != len(some):
                break
            d = np.zeros_like(result)
            for copy, place in enumerate(some):
                d[(copy, *place[depth:])] = 1.0
            d_copies = node.equation.vjp(saved, d, **node.static)[slot]
            for copy, place in enumerate(some):
                column[place] = d_copies[(copy, *index[depth:])]
        else:
            return [column] if _agree([column], step, slots, index) else None
    return None


def _one_by_one(step: BackwardStep, slots: list[int], index: Index, reached: Arrays) -> Iterator[Slope]:
    """Yield each slope by a separate vjp."""
    node = step.node
    for which, place in ((which, place) for which, mask in enumerate(reached) for place in _places(mask)):
        alone = [namespace(x).zeros_like(x) for x in step.d_results]
        alone[which][place] = 1.0
        d_inputs = node.equation.vjp(node.saved, alone[0] if len(alone) == 1 else tuple(alone), **node.static)
        yield which, place, sum(d_inputs[k][index] for k in slots)


def _agree(columns: Arrays, step: BackwardStep, slots: list[int], index: Index) -> bool:
    """Return whether cotangents times slopes add up to the gradient, but for rounding."""
    parts = [np.asarray(d, np.float64) * column for d, column in zip(step.d_results, columns, strict=True)]
    gradient = sum(float(d[index]) for k in slots if (d := step.d_inputs[k]) is not None)
    precision = SUMMED * np.finfo(columns[0].dtype).eps
    return bool(abs(sum(map(np.sum, parts)) - gradient) <= precision * sum(abs(part).sum() for part in parts))


def _places(mask: Any) -> list[Index]:
    return list(map(tuple, np.argwhere(mask).tolist()))


def perturbed(x: Any, index: Index, step: float) -> Any:
    """Return a copy of the array with `step` added to one element."""
    copy = namespace(x).asarray(x, copy=True)
    copy[index] += step
    return copy


def in_float64(arrays: Arrays) -> Arrays:
    """Return arrays of real numbers in float64, others as they are."""
    return [x.astype(np.float64, copy=False) if x.dtype.kind in "fO" else x for x in arrays]


def _forward(node: Node, inputs: Arrays) -> Arrays:
    result, _ = node.equation.forward(*inputs, **node.static)
    return result if isinstance(result, tuple) else (result,)
