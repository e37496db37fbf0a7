"""The gradients of a pass, without those of its parameters: they are as large as the model, and each is computed anew
when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from byhand.book.explain.explainer import Explainer
from byhand.engine import BackwardStep
from byhand.engine.backward import apply_vjp
from byhand.tracing.gradients import Gradients
from byhand.tracing.trace import Trace

Uses = dict[str, list[tuple[BackwardStep, int]]]  # of each leaf: the steps that read it, and as which input


class Lean(Explainer):
    """Answers questions about a pass whose parameters' gradients are not kept."""

    @cached_property
    def gradients(self) -> Gradients:
        """The backward pass from the loss."""
        return gradients_of(self.trace)


def gradients_of(trace: Trace) -> Gradients:
    """Walk back from the result; of what each use passed back only the sums are kept, and no leaf's."""
    uses: Uses = {}

    def inner(step: BackwardStep) -> tuple[Any, ...]:
        given = list(enumerate(zip(step.node.inputs, step.d_inputs, strict=True)))
        for slot, (tensor, d) in given:
            if d is not None and tensor.node is None:
                uses.setdefault(trace.name(tensor), []).append((replace(step, d_inputs=()), slot))
        return tuple(d if tensor.node else None for _, (tensor, d) in given)

    found = trace.backward(settle=inner)
    steps = tuple(replace(step, d_inputs=(None,) * len(step.d_inputs)) for step in found.steps)
    return replace(found, steps=steps, by_name=OnDemand(found.by_name, uses))


class OnDemand(Mapping[str, Any]):
    """Gradients by name, of which the last leaf's is kept."""

    def __init__(self, inner: Mapping[str, Any], uses: Uses) -> None:
        self._inner, self._uses = inner, uses
        self._last: tuple[str, Any] = "", None

    def __getitem__(self, name: str) -> Any:
        if name in self._inner:
            return self._inner[name]
        last, found = self._last
        if last != name:
            first, *others = (_passed_back(*use) for use in self._uses[name])
            self._last = name, found = name, sum(others, first)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._inner or name in self._uses

    def __iter__(self) -> Iterator[str]:
        yield from self._inner
        yield from self._uses

    def __len__(self) -> int:
        return len(self._inner) + len(self._uses)


def _passed_back(step: BackwardStep, slot: int) -> Any:
    one = len(step.d_results) == 1
    return apply_vjp(step.node, step.node.saved, step.d_results[0] if one else step.d_results)[slot]
