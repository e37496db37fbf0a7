"""What only rounding has left over is zero: sums that cancel exactly on paper come out as about 1e-17 in float64.

An element that is tiny beside the largest part of its own sum is made exactly 0 as soon as it is computed,
so that everything after it is worked with that 0: the numbers that are shown are the numbers that are used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from byhand.book.lessons.gradient_terms import gradient_term
from byhand.book.numbers import arithmetic
from byhand.book.numbers.exact import Exact
from byhand.engine import BackwardStep, Equation, Tensor, interpreting, walk_back
from byhand.engine.terms import Index
from byhand.tracing.contributions import contributions
from byhand.tracing.trace import Watch, Watched, collect

SUSPECT = 1e-9  # larger elements are no rounding, whatever their parts


class SettledWatch(Watch):
    """Watch, with what rounding has left over of each equation's (first) result set to zero."""

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Apply the equation, and settle its result before anything else reads it."""
        result = super().apply(equation, inputs, static, name)
        tensor = result[0] if isinstance(result, tuple) else result
        data = tuple(t.data for t in inputs)

        def largest_part(index: Index) -> float:
            return arithmetic.size(equation.terms(index, data, tensor.data, **static))

        tensor.data = _settled(tensor.data, largest_part)
        return result


def settled_watch(compute: Callable[[], Tensor]) -> tuple[Tensor, Watched]:
    """Run a computation as `watch` does, with rounding settled on the way."""
    watch = SettledWatch()
    with interpreting(watch):
        result = compute()
    return result, collect(tuple(watch.applications))


def settled_walk(loss: Tensor, d_loss: Any, watched: Watched) -> list[BackwardStep]:
    """Return the walk back with every element that only rounding has left over set to zero, from then on."""

    def settle(step: BackwardStep) -> tuple[Any, ...]:
        return tuple(
            d if d is None or not t.requires_grad else _settled(d, partial(_largest_part, step, slot, watched))
            for slot, (t, d) in enumerate(zip(step.node.inputs, step.d_inputs, strict=True))
        )

    return list(walk_back(loss, d_loss, settle))


def settle_gradients(loss: Tensor, d_loss: Any, watched: Watched) -> None:
    """Set `.grad` of every leaf that requires one, as `loss.backward` does, by the settled walk."""
    found: dict[str, list[Any]] = {}
    for step in settled_walk(loss, d_loss, watched):
        for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
            if d is not None and tensor.node is None and tensor.requires_grad:
                found.setdefault(watched.name(tensor), []).append(d)
    for name, parts in found.items():
        watched.tensor(name).grad = sum(parts[1:], parts[0])


def _settled(array: Any, largest_part: Callable[[Index], float]) -> Any:
    values = np.asarray(array, dtype=np.float64)
    suspects = np.argwhere((values != 0) & (np.abs(values) < SUSPECT))
    if not len(suspects):
        return array
    clean = np.array(array, copy=True)
    for place in suspects:
        index = tuple(map(int, place))
        if abs(values[index]) < arithmetic.NOTHING * largest_part(index):
            clean[index] = Exact.fraction(0) if clean.dtype.kind == "O" else 0.0
    return clean


def _largest_part(step: BackwardStep, slot: int, watched: Watched, index: Index) -> float:
    term = gradient_term(step, slot, index)
    if term is not None:
        return arithmetic.size(term)
    parts = contributions(step, step.node.inputs[slot], index, watched)
    return max((abs(contribution.value) for contribution in parts), default=0.0)
