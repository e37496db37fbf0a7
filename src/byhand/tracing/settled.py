"""Passes without rounding residue: sums that cancel exactly on paper are about 1e-17 in float64.

An element that is tiny relative to the largest part of its sum becomes 0 as soon as it is computed. All later
computations use that 0, so the numbers shown are the numbers used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from byhand.engine import BackwardStep, Equation, Tensor
from byhand.engine.terms import NOTHING, Index, Term, size
from byhand.tracing.gradients import Gradients, gradient_term
from byhand.tracing.trace import Trace
from byhand.tracing.tracer import Tracer

SUSPECT = 1e-9  # larger elements are never rounding residue


class SettledTracer(Tracer):
    """Traces, and snaps rounding residue in each equation's (first) result to zero."""

    def apply(self, equation: Equation, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Apply the equation, and settle its result before another equation reads it."""
        result = super().apply(equation, inputs, static, name)
        application = self.applications[-1]
        first = application.results[0]
        first.data = _settled(first.data, application.term)
        return result


def settled_trace(compute: Callable[[], Tensor]) -> Trace:
    """Return the trace of a computation, its rounding residue snapped to zero."""
    return Trace.of(compute, SettledTracer())


def settled_backward(trace: Trace, d_result: Any = None) -> Gradients:
    """Return the backward pass; rounding residue becomes zero before the gradient propagates further."""

    def settle(step: BackwardStep) -> tuple[Any, ...]:
        return tuple(
            d if d is None or not t.requires_grad else _settled(d, partial(gradient_term, trace, step, slot))
            for slot, (t, d) in enumerate(zip(step.node.inputs, step.d_inputs, strict=True))
        )

    return trace.backward(d_result, settle)


def _settled(array: Any, term: Callable[[Index], Term]) -> Any:
    """Return an array, of any dtype, with residue set to 0; `term` returns an element's arithmetic."""
    values = np.asarray(array, dtype=np.float64)
    suspects = np.argwhere((values != 0) & (np.abs(values) < SUSPECT))
    if not len(suspects):
        return array
    clean = np.array(array, copy=True)
    for place in suspects:
        index = tuple(map(int, place))
        if abs(values[index]) < NOTHING * size(term(index)):
            clean[index] = abs(clean[index]) * 0
    return clean
